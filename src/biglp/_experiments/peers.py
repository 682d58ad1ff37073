"""biglp beside what one would use instead: the same rows and labels, from 10³ to 10⁶ rows.

Each method runs in a process of its own, which is ended when it passes the time or the memory that
it may have. A method that was ended is not run on more rows, and the table says where and why.

Time is that on the clock or that of the processor, whichever is less: where other programs keep the
processors busy, a method is not charged for waiting. A method that does neither work nor end is
ended all the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.files import atomic_write
from biglp._core.memory import format_bytes, private_memory
from biglp._experiments.data import MissingDataError, find
from biglp._experiments.peer_methods import METHODS, MISSING, NEEDS
from biglp._experiments.plots import figure, require_matplotlib, styles
from biglp._experiments.report import Clock, Output, markdown_table

SIZES = (1_000, 5_000, 20_000, 70_000, 300_000, 1_000_000)
LABELS_EACH = 10
SIM_FEATURES, SIM_CLASSES = 100, 10
POLL_SECONDS = 0.1
"""How often memory is looked at; the system holds a process up while it counts its pages."""
IDLE_FACTOR = 10
"""A method may take this many times its limit on the clock, where it has to wait for others."""
OURS, REFERENCE, REFERENCE_ROWS, TIMES_FASTER = "biglp", "LabelSpreading knn", 20_000, 20
PAGE = "peers.md"
PROGRAM = (sys.executable, "-m", "biglp._experiments.peer_methods")


@dataclass(frozen=True)
class Limits:
    """What a method may take: seconds of work, and bytes of private memory."""

    seconds: float = 300.0
    memory: int = 8 * 2**30


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
    """

    method: str
    n_rows: int
    data: str
    seconds: float | None = None
    cpu: float | None = None
    peak: int = 0
    accuracy: float | None = None
    why: str = ""

    @property
    def work(self) -> float | None:
        """Seconds without waiting for a processor that others keep busy."""
        if self.seconds is None or self.cpu is None:
            return None
        return min(self.seconds, self.cpu)


def run(
    sizes: Sequence[int], limits: Limits, output: Output, say: Callable[[str], None]
) -> list[Outcome]:
    """Measure all methods, write CSV, plot and page."""
    if not sizes or min(sizes) < 100:
        raise ParameterError(f"sizes={list(sizes)} must be numbers of rows of 100 or more.")
    require_matplotlib()
    clock, outcomes = Clock(), []
    stopped: dict[str, str] = {}
    for n_rows in sorted(set(sizes)):
        with tempfile.TemporaryDirectory(prefix="biglp-peers-") as folder:
            data, truth, labels = write_data(Path(folder), n_rows)
            for method in METHODS:
                if method in stopped:
                    outcome = Outcome(method, n_rows, data, why=f"not run: {stopped[method]}")
                else:
                    outcome = run_one(method, Path(folder), n_rows, data, truth, labels, limits)
                if outcome.why and method not in stopped:
                    stopped[method] = f"{outcome.why} at {n_rows:,} rows"
                outcomes.append(outcome)
                say(f"  {n_rows:,} rows, {method}: {_cell(outcome)}")
    output.csv("peers", [_csv_row(outcome) for outcome in outcomes])
    _draw(outcomes, limits, output)
    with atomic_write(output.folder / PAGE) as file:
        file.write(page(outcomes, limits, output, clock.facts()).encode())
    return outcomes


def write_data(folder: Path, n_rows: int) -> tuple[str, np.ndarray, np.ndarray]:
    """Write X.npy and y.npy; return what they are, the truth and the labels."""
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
        X, truth = simulated(n_rows)
        data = f"simulated, {SIM_FEATURES} features ({why})"
    labels = np.full(n_rows, -1, dtype=np.int64)
    for code in np.unique(truth):
        members = np.flatnonzero(truth == code)
        labels[rng.choice(members, min(LABELS_EACH, len(members)), replace=False)] = code
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", labels)
    return data, truth, labels


def simulated(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ``sim:`` and their classes."""
    from biglp._sources.formats.simulated import SimulatedSource
    from biglp._sources.formats.simulation import Simulation

    spec = f"sim:{n_rows}x{SIM_FEATURES},classes={SIM_CLASSES}"
    source = SimulatedSource(Simulation.parse(spec))
    return np.asarray(source.read(0, n_rows)), np.asarray(source.truth(0, n_rows))


def run_one(
    method: str,
    folder: Path,
    n_rows: int,
    data: str,
    truth: np.ndarray,
    labels: np.ndarray,
    limits: Limits,
    program: Sequence[str] = PROGRAM,
) -> Outcome:
    """Run one method within its limits."""
    (folder / "answer.npy").unlink(missing_ok=True)
    process = subprocess.Popen(
        [*program, method, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        peak, why = _watch(process, limits)
    finally:
        process.kill()  # also when this process is interrupted; an ended one does not mind
        printed, complaint = process.communicate()
    if why:
        return Outcome(method, n_rows, data, peak=peak, why=why)
    if process.returncode == MISSING:
        extra = NEEDS.get(method, "peers")
        return Outcome(method, n_rows, data, why=f'not installed (pip install "biglp[{extra}]")')
    if process.returncode < 0:
        return Outcome(
            method, n_rows, data, peak=peak, why=f"ended by signal {-process.returncode}"
        )
    if process.returncode:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:]
        return Outcome(method, n_rows, data, peak=peak, why=f"failed: {' '.join(last)[:160]}")
    facts = json.loads(printed.decode().splitlines()[-1])
    hidden = labels < 0
    right = float(np.mean((np.load(folder / "answer.npy") == truth)[hidden]))
    return Outcome(method, n_rows, data, facts["seconds"], facts["cpu"], peak, right)


def _watch(process: subprocess.Popen[bytes], limits: Limits) -> tuple[int, str]:
    """Wait until a process ends or passes a limit; its peak memory, and which limit."""
    began, peak = time.monotonic(), 0
    # What it prints is one line, which the pipe holds; nothing has to be read while it runs.
    while process.poll() is None:
        used, clock = private_memory(process.pid), time.monotonic() - began
        peak = max(peak, used)
        work = min(clock, processor_seconds(process.pid, clock))
        if used > limits.memory:
            return peak, f"more than {format_bytes(limits.memory)} of memory"
        if work > limits.seconds or clock > IDLE_FACTOR * limits.seconds:
            return peak, f"more than {limits.seconds:g} s"
        time.sleep(POLL_SECONDS)
    return peak, ""


def processor_seconds(pid: int, otherwise: float) -> float:
    """Processor seconds of another process so far; ``otherwise`` where that cannot be known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return otherwise
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system


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
    rows = [[name, *(_cell(by_key[name, n]) for n in sizes)] for name in METHODS]
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
                output.link("peers", "Seconds against rows, all methods"),
                f"<sub>{facts['date']}, {facts['hardware']}, {facts['versions']}. "
                f"`{facts['command']}`, {facts['seconds']:.0f} s on the clock.</sub>",
            ]
        )
        + "\n"
    )


def _cell(outcome: Outcome) -> str:
    if outcome.work is None or outcome.accuracy is None:
        return outcome.why
    used = f"{outcome.peak / 2**20:,.0f} MiB"
    return f"{outcome.work:.3g} s, {used}, {outcome.accuracy:.1%}"


def _csv_row(outcome: Outcome) -> dict[str, Any]:
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


def _draw(outcomes: Sequence[Outcome], limits: Limits, output: Output) -> None:
    with figure(output.image("peers"), 1, size=(7.2, 4.4)) as (_, (axis,)):
        for name, style in zip(METHODS, styles(), strict=False):
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
