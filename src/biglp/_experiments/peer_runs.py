"""One method in a process of its own, which is ended when it passes a limit.

Time is that on the clock or that of the processor, whichever is less: where other programs keep the
processors busy, a method is not charged for waiting. A method that neither works nor ends is ended
all the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import psutil

from biglp._core.memory import format_bytes, private_memory
from biglp._experiments.data import MissingDataError, find
from biglp._experiments.peer_methods import MISSING, NEEDS

LABELS_EACH = 10
SIM_FEATURES, SIM_CLASSES = 100, 10
POLL_SECONDS = 0.1
"""How often memory is looked at; counting its pages stops a process for a moment."""
IDLE_FACTOR = 10
"""A method may take this many times its limit on the clock, where it has to wait for others."""
PROGRAM = (sys.executable, "-m", "biglp._experiments.peer_methods")


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
    from biglp._sources.formats.simulated import SimulatedSource
    from biglp._sources.formats.simulation import Simulation

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
