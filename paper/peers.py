"""biglp beside what one would use instead: the same rows and labels, from 10³ to 10⁶ rows.

Each method runs in a process of its own, which is ended when it passes the time or the memory that
it may have. A method that was ended is not run on more rows, and the table says where and why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from biglp._core.errors import ParameterError
from biglp._core.memory import format_bytes, private_memory
from biglp._files.local import atomic_write
from paper import lploka
from paper.lploka import LpLoka
from paper.pages import (
    Clock,
    MissingDataError,
    Output,
    figure,
    find,
    markdown_table,
    require_matplotlib,
    styles,
)
from paper.peer_methods import METHODS, MISSING, NEEDS

# --------------------------------------------------------------------------------------------------
# One method in a process of its own, which is ended when it passes a limit.
#
# Time is that on the clock or that of the processor, whichever is less: where other programs keep
# the processors busy, a method is not charged for waiting. A method that neither works nor ends is
# ended all the same.


LABELS_EACH = 10
SIM_FEATURES, SIM_CLASSES = 100, 10
POLL_SECONDS = 0.1
"""How often memory is looked at; counting its pages stops a process for a moment."""
IDLE_FACTOR = 10
"""A method may take this many times its limit on the clock, where it has to wait for others."""
PROGRAM = (sys.executable, "-m", "paper.peer_methods")


@dataclass(frozen=True)
class Limits:
    """What a method may take: seconds of work, and bytes of private memory."""

    seconds: float = 300.0
    memory: int = 8 * 2**30


@dataclass(frozen=True)
class Problem:
    """Rows that all methods label.

    Attributes
    ----------
    folder : Path
        Holds X.npy and y.npy, and the answer of the method that runs.
    data : str
        What the rows are.
    truth, labels : ndarray of shape (n_rows,)
        Class of every row, and the labels that are shown (-1 elsewhere).
    """

    folder: Path
    data: str
    truth: np.ndarray
    labels: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.truth)

    def accuracy(self) -> float:
        """Share of the hidden labels that the method's answer has right."""
        answer = np.load(self.folder / "answer.npy")
        return float(np.mean((answer == self.truth)[self.labels < 0]))


@dataclass(frozen=True)
class Outcome:
    """One method on one number of rows.

    Attributes
    ----------
    seconds, cpu : float, optional
        On the clock and of the processor; None where it was ended or not run.
    peak : int
        Most private memory, in bytes.
    accuracy : float, optional
        On the rows without a label.
    why : str
        Why there is no answer; "" where there is.
    stages : mapping of str to float
        Seconds of its parts, where it has such.
    """

    method: str
    n_rows: int
    data: str
    seconds: float | None = None
    cpu: float | None = None
    peak: int = 0
    accuracy: float | None = None
    why: str = ""
    stages: Mapping[str, float] = field(default_factory=dict)

    @property
    def work(self) -> float | None:
        """Seconds without waiting for a processor that others keep busy."""
        if self.seconds is None or self.cpu is None:
            return None
        return min(self.seconds, self.cpu)


def write_problem(folder: Path, n_rows: int) -> Problem:
    """Write X.npy and y.npy: rows of MNIST, or simulated ones where it has too few."""
    rng = np.random.default_rng(0)
    try:
        with np.load(find("mnist.npz")) as archive:
            X, truth = archive["X"], archive["y"].astype(np.int64)
        why = f"MNIST has {len(X):,} rows"
    except MissingDataError as error:
        X, truth, why = np.empty((0, 0)), np.empty(0), str(error)
    if n_rows <= len(X):
        chosen = rng.permutation(len(X))[:n_rows]
        X, truth, data = X[chosen].astype(np.float32) / 255, truth[chosen], "MNIST"
    else:
        X, truth = _simulated(n_rows)
        data = f"simulated, {SIM_FEATURES} features ({why})"
    labels = np.full(n_rows, -1, dtype=np.int64)
    for code in np.unique(truth):
        members = np.flatnonzero(truth == code)
        labels[rng.choice(members, min(LABELS_EACH, len(members)), replace=False)] = code
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", labels)
    return Problem(folder, data, truth, labels)


def _simulated(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ``sim:`` and their classes."""
    from biglp._rows.simulated import SimulatedSource, Simulation

    spec = f"sim:{n_rows}x{SIM_FEATURES},classes={SIM_CLASSES}"
    source = SimulatedSource(Simulation.parse(spec))
    return np.asarray(source.read(0, n_rows)), np.asarray(source.truth(0, n_rows))


def run_one(
    method: str, problem: Problem, limits: Limits, program: Sequence[str] | None = None
) -> Outcome:
    """Run one method within its limits, by a program of its own where it has one."""
    (problem.folder / "answer.npy").unlink(missing_ok=True)
    process = subprocess.Popen(
        [*(program or PROGRAM), method, str(problem.folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        peak, why = _watch(process, limits)
    finally:
        # Also when this process is interrupted; nothing happens to those that have ended.
        for one in _family(process):
            with suppress(psutil.Error):
                one.kill()
        printed, complaint = process.communicate()
    if process.returncode == MISSING and not why:
        extra, peak = NEEDS.get(method, "peers"), 0
        why = f'not installed (pip install "biglp[{extra}]")'
    elif process.returncode < 0 and not why:
        why = f"ended by signal {-process.returncode}"
    elif process.returncode and not why:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:]
        why = f"failed: {' '.join(last)[:160]}"
    done = Outcome(method, problem.n_rows, problem.data, peak=peak, why=why)
    if why:
        return done
    facts = json.loads(printed.decode().splitlines()[-1])
    accuracy = problem.accuracy()
    figures = {name: facts[name] for name in ("seconds", "cpu")}
    return replace(done, accuracy=accuracy, stages=facts.get("stages", {}), **figures)


def _watch(process: subprocess.Popen[bytes], limits: Limits) -> tuple[int, str]:
    """Wait until a process ends or passes a limit; its peak memory, and which limit."""
    began, peak = time.monotonic(), 0
    # What it prints is one line, which the pipe holds; nothing has to be read while it runs.
    while process.poll() is None:
        family, clock = [one.pid for one in _family(process)], time.monotonic() - began
        used = sum(private_memory(pid) for pid in family)
        peak = max(peak, used)
        work = min(clock, sum(_processor_seconds(pid, 0.0) for pid in family) or clock)
        if used > limits.memory:
            return peak, f"more than {format_bytes(limits.memory)} of memory"
        if work > limits.seconds or clock > IDLE_FACTOR * limits.seconds:
            return peak, f"more than {limits.seconds:g} s"
        time.sleep(POLL_SECONDS)
    return peak, ""


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """A process and those that it has started, the ranks of an MPI program for example."""
    try:
        head = psutil.Process(process.pid)
        return [*head.children(recursive=True), head]
    except psutil.Error:  # it has ended
        return []


def _processor_seconds(pid: int, otherwise: float) -> float:
    """Processor seconds of another process so far; ``otherwise`` where that cannot be known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return otherwise
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system


# --------------------------------------------------------------------------------------------------
# From what the methods took to the page ``peers.md``: verdict, table, CSV and plot.


OURS, REFERENCE, REFERENCE_ROWS, TIMES_FASTER = "biglp", "LabelSpreading knn", 20_000, 20


def verdict(outcomes: Sequence[Outcome]) -> tuple[bool | None, str]:
    """Whether biglp is as much faster as it is meant to be, at equal or better accuracy."""
    by_name = {o.method: o for o in outcomes if o.n_rows == REFERENCE_ROWS}
    ours, other = by_name.get(OURS), by_name.get(REFERENCE)
    what = f"at {REFERENCE_ROWS:,} rows biglp is {TIMES_FASTER} times faster than {REFERENCE}"
    if ours is None or other is None or ours.work is None or other.work is None:
        return None, f"{what}: not both were run at that number of rows"
    assert ours.accuracy is not None
    assert other.accuracy is not None
    ratio = other.work / ours.work
    shown = ratio >= TIMES_FASTER and ours.accuracy >= other.accuracy
    return shown, (
        f"{what} at equal or better accuracy: {ratio:.1f} times ({ours.work:.2f} s against "
        f"{other.work:.1f} s), accuracy {ours.accuracy:.1%} against {other.accuracy:.1%}"
    )


def page(outcomes: Sequence[Outcome], limits: Limits, output: Output, facts: dict[str, Any]) -> str:
    """Write the table and the plot as Markdown."""
    sizes = sorted({o.n_rows for o in outcomes})
    data = {o.n_rows: o.data for o in outcomes}
    by_key = {(o.method, o.n_rows): o for o in outcomes}
    head = ["method", *(f"{n:,} rows" for n in sizes)]
    rows = [[name, *(cell(by_key[name, n]) for n in sizes)] for name in _methods(outcomes)]
    shown, what = verdict(outcomes)
    words = {True: "Shown", False: "**Not shown**", None: "Cannot be said"}[shown]
    what_rows = "; ".join(f"{n:,} rows: {data[n]}" for n in sizes)
    return (
        "\n\n".join(
            [
                "## Peers",
                f"{words}: {what}.",
                f"The same rows and {LABELS_EACH} labels a class through each method "
                f"({what_rows}). A cell has seconds, peak private memory, and accuracy on the "
                "rows without a label. Seconds are those on the clock or, where other programs "
                "kept the processors busy, those of the processor, the lesser. Each method runs in "
                "a process of its own, on default settings but for `LabelSpreading(max_iter=200)` "
                "and widths of Gaussian kernels that fit the rows. Time is without imports, after "
                "one run on a few rows, the best of three where they are short; it includes the "
                "graph. Limits: "
                f"{limits.seconds:g} s, imports included, and {format_bytes(limits.memory)}; a "
                "method that passes one is not run on more rows.",
                markdown_table(head, rows),
                *_stages(outcomes),
                output.link("peers", "Seconds against rows, all methods"),
                f"<sub>{facts['date']}, {facts['hardware']}, {facts['versions']}. "
                f"`{facts['command']}`, {facts['seconds']:.0f} s on the clock.</sub>",
            ]
        )
        + "\n"
    )


def _stages(outcomes: Sequence[Outcome]) -> list[str]:
    """What the stages of LP-LOKA took, where it was run."""
    staged = [outcome for outcome in outcomes if outcome.stages]
    if not staged:
        return []
    names = list(staged[0].stages)
    table = [
        [f"{one.n_rows:,}", *(f"{one.stages[name]:.3g} s" for name in names)] for one in staged
    ]
    return [
        "LP-LOKA's stages, seconds on the clock: similarities to the landmarks (ours, NumPy), then "
        "its two programs as a whole, which read and write text, and what they say of their "
        "computation alone. Files that we write for them are not counted.",
        markdown_table(["rows", *names], table),
    ]


def _methods(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.method for outcome in outcomes))


def cell(outcome: Outcome) -> str:
    """What a method took in a few words, or why it has no answer."""
    if outcome.work is None or outcome.accuracy is None:
        return outcome.why
    used = f"{outcome.peak / 2**20:,.0f} MiB"
    return f"{outcome.work:.3g} s, {used}, {outcome.accuracy:.1%}"


def csv_row(outcome: Outcome) -> dict[str, Any]:
    """One line of the CSV file."""
    why = outcome.why
    return {
        "method": outcome.method,
        "rows": outcome.n_rows,
        "data": outcome.data,
        "seconds": why or round(outcome.work or 0.0, 4),
        "clock_seconds": why or round(outcome.seconds or 0.0, 4),
        "cpu_seconds": why or round(outcome.cpu or 0.0, 4),
        "peak_mib": round(outcome.peak / 2**20, 1),
        "accuracy": why or round(outcome.accuracy or 0.0, 5),
        "stopped": why or "no",
    }


def draw(outcomes: Sequence[Outcome], limits: Limits, output: Output) -> None:
    """Draw seconds against rows, one line a method."""
    with figure(output.image("peers"), 1, size=(7.2, 4.4)) as (_, (axis,)):
        for name, style in zip(_methods(outcomes), styles(), strict=False):
            mine = [o for o in outcomes if o.method == name]
            ran = [o for o in mine if o.work is not None]
            ended = next((o for o in mine if o.why and not o.why.startswith("not run")), None)
            label = name if ended is None else f"{name} (stops: {ended.why} at {ended.n_rows:,})"
            axis.plot([o.n_rows for o in ran], [o.work for o in ran], label=label, **style)
            if ended is not None and ran:
                axis.plot(
                    [ran[-1].n_rows, ended.n_rows],
                    [ran[-1].work, limits.seconds],
                    color=style["color"],
                    linestyle=":",
                    linewidth=1,
                )
                axis.plot(ended.n_rows, limits.seconds, "x", color=style["color"], markersize=8)
        real = [o.n_rows for o in outcomes if o.data == "MNIST"]
        made = [o.n_rows for o in outcomes if o.data != "MNIST"]
        if real and made:
            border = float(np.sqrt(max(real) * min(made)))
            axis.axvline(border, color="#bbbbbb", linestyle="--", linewidth=0.8)
            place = axis.get_xaxis_transform()
            axis.text(border, 0.02, " simulated →", fontsize=7, transform=place)
        axis.axhline(limits.seconds, color="#bbbbbb", linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))


# --------------------------------------------------------------------------------------------------


SIZES = (1_000, 5_000, 20_000, 70_000, 300_000, 1_000_000)
PAGE = "peers.md"


def run(
    sizes: Sequence[int],
    limits: Limits,
    output: Output,
    say: Callable[[str], None],
    lp_loka: LpLoka | None = None,
) -> list[Outcome]:
    """Measure all methods, write CSV, plot and page; LP-LOKA too, where its binaries are given."""
    if not sizes or min(sizes) < 100:
        raise ParameterError(f"sizes={list(sizes)} must be numbers of rows of 100 or more.")
    require_matplotlib()
    programs: dict[str, tuple[str, ...]] = {}
    if lp_loka is not None:
        lp_loka.check()
        programs = dict.fromkeys(lploka.METHODS, lp_loka.program())
    clock, outcomes = Clock(), []
    stopped: dict[str, str] = {}
    for n_rows in sorted(set(sizes)):
        with tempfile.TemporaryDirectory(prefix="biglp-peers-") as folder:
            problem = write_problem(Path(folder), n_rows)
            for method in (*METHODS, *programs):
                if method in stopped:
                    why = f"not run: {stopped[method]}"
                    outcome = Outcome(method, n_rows, problem.data, why=why)
                else:
                    own = {"program": programs[method]} if method in programs else {}
                    outcome = run_one(method, problem, limits, **own)
                if outcome.why and method not in stopped:
                    stopped[method] = f"{outcome.why} at {n_rows:,} rows"
                outcomes.append(outcome)
                say(f"  {n_rows:,} rows, {method}: {cell(outcome)}")
    output.csv("peers", [csv_row(outcome) for outcome in outcomes])
    draw(outcomes, limits, output)
    with atomic_write(output.folder / PAGE) as file:
        file.write(page(outcomes, limits, output, clock.facts()).encode())
    return outcomes
