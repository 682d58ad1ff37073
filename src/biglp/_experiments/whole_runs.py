"""Whole runs of ``biglp fit`` on simulated rows, each in a process of its own.

A run's time is set beside one plain sequential read of the same file, its memory is the peak of
what is resident without clean file pages, and its labels are compared with the simulated truth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BigLPError
from biglp._core.memory import private_memory

METHODS = {
    "random": ["--factor", "nystrom", "--landmarks", "random"],
    "kmeans": ["--factor", "nystrom", "--landmarks", "kmeans"],
    "kmeans-full": ["--factor", "nystrom", "--landmarks", "kmeans-full"],
    "anchors": ["--factor", "anchors"],
}
READ_BYTES = 16 << 20
POLL_SECONDS = 0.05
BIGLP = [sys.executable, "-m", "biglp"]


def simulate(path: Path, rows: str, features: int) -> None:
    """Write simulated rows where they are not there yet."""
    if not path.exists():
        command = [*BIGLP, "simulate", rows, str(features), "-o", str(path), "--quiet"]
        subprocess.run(command, check=True)


def sequential_read(path: Path) -> float:
    """Seconds of one plain read of the file, dropped from the page cache first."""
    buffer = bytearray(READ_BYTES)
    with open(path, "rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.perf_counter()
        while file.readinto(buffer):
            pass
    return time.perf_counter() - began


def run_fit(rows: str | Path, method: str, k: int, memory: str, out: Path) -> dict[str, Any]:
    """Run one method on a file (with its labels and truth beside it) or a simulation.

    Returns
    -------
    facts : dict
        ``seconds``, ``cpu``, ``peak`` (bytes), ``steps`` (seconds by name), and ``accuracy``, which
        is None for a simulation, whose true classes are in no file.
    """
    command = [*BIGLP, "fit", str(rows), "-o", str(out), "--overwrite", "-k", str(k)]
    command += ["--memory", memory, "--alpha", "0.9", "--class-balance", "mass", "--json"]
    command += METHODS[method]
    if isinstance(rows, Path):
        command += ["--labels", str(rows.with_name(f"{rows.stem}.labels.npy"))]
    before, began = os.times(), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found: dict[str, int] = {}
    watch = threading.Thread(target=lambda: found.update(peak=_peak(process)))
    watch.start()
    printed, complaint = process.communicate()
    seconds = time.perf_counter() - began
    watch.join()
    if process.returncode:
        raise BigLPError(f"{' '.join(command[2:])} failed: {complaint.decode().strip()[-500:]}")
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    steps = {step["step"]: step["seconds"] for step in json.loads(printed)["steps"]}
    accuracy = None
    if isinstance(rows, Path):
        answer = np.load(out / "labels.npy", mmap_mode="r")
        truth = np.load(rows.with_name(f"{rows.stem}.truth.npy"), mmap_mode="r")
        accuracy = float(np.mean(np.asarray(answer) == np.asarray(truth)))
    facts = {"seconds": seconds, "cpu": cpu, "peak": found["peak"]}
    return {**facts, "accuracy": accuracy, "steps": steps}


def _peak(process: subprocess.Popen[bytes]) -> int:
    """Largest private memory of a process while it runs, in bytes."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, private_memory(process.pid))
        time.sleep(POLL_SECONDS)
    return peak
