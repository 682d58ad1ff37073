"""The paper's largest run: 100 million rows of 100 features, k = 20.

A smaller run is measured as such, and what it suggests for 100 million rows stands in a table of
its own, named an extrapolation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BigLPError
from biglp._core.memory import format_bytes, private_memory
from biglp._files.local import free_space
from biglp._rows.simulated import Simulation
from paper.pages import Clock, Output, Part, figure, markdown_table, numbers

# --------------------------------------------------------------------------------------------------
# Whole runs of ``biglp fit`` on simulated rows, each in a process of its own.
#
# A run's time is set beside one plain sequential read of the same file, its memory is the peak of
# what is resident without clean file pages, and its labels are compared with the simulated truth.


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


# --------------------------------------------------------------------------------------------------


PAPER_NAMES = {"random": "nystrom-random", "kmeans": "nystrom-kmeans"}
NAMES = {
    "random": "Nyström, random landmarks",
    "kmeans": "Nyström, k-means on a sample",
    "kmeans-full": "Nyström, k-means over all rows",
    "anchors": "anchors",
}


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes
    ----------
    rows, features, k
        Shape of the simulation, and landmarks.
    methods : tuple of str
    memory : str
        Budget of a run.
    file : Path, optional
        Rows written by ``biglp simulate``; made and deleted without it.
    """

    rows: str = "100M"
    features: int = 100
    k: int = 20
    methods: tuple[str, ...] = ("random", "kmeans", "anchors")
    memory: str = "4GB"
    file: Path | None = None


FULL = Plan()
QUICK = Plan(rows="5M")


def run(plan: Plan, output: Output, say: Callable[[str], None]) -> Part:
    """Run each method from rows to a file of labels."""
    clock = Clock()
    spec = f"sim:{plan.rows}x{plan.features}"
    n_rows = Simulation.parse(spec).n_rows
    size = n_rows * (4 * plan.features + 8)
    read: float | None = None
    with tempfile.TemporaryDirectory(prefix="biglp-scale-") as folder:
        rows: str | Path = spec
        where = f"`{spec}`, generated again in each sweep: {format_bytes(size)} do not fit on disk"
        if plan.file is not None or free_space(Path(folder)) > 1.5 * size:
            rows = plan.file or Path(folder) / "sim.npy"
            where = f"a file of {format_bytes(size)}"
            simulate(rows, plan.rows, plan.features)
            n_rows = _rows_in(rows)
            read = sequential_read(rows)
        found = {}
        for method in plan.methods:
            found[method] = run_fit(rows, method, plan.k, plan.memory, Path(folder) / "out")
            say(f"  {n_rows:,} rows, {method}: {found[method]['seconds']:.1f} s")
    output.csv("scale", [_csv_row(plan, n_rows, name, facts) for name, facts in found.items()])
    _draw(found, n_rows, output)
    paper = {entry["method"]: entry for entry in numbers()["scale"]}
    target = max(entry["rows"] for entry in paper.values())
    part = Part("scale", "The 100-million-row simulation", "")
    part.body = "\n\n".join(
        [
            f"`biglp fit` on {where}, from the start of the process to labels on disk, "
            f"`--memory {plan.memory}`, k = {plan.k}"
            + (f"; one plain read of the file takes {read:.1f} s." if read is not None else "."),
            f"**Measured, {n_rows:,} × {plan.features}:**",
            _measured(found, paper, n_rows),
            *_extrapolated(found, paper, n_rows, target),
            output.link("scale", "Seconds of each method, measured"),
        ]
    )
    if n_rows >= target:
        part.verdicts = [
            (facts["seconds"] < paper[PAPER_NAMES[name]]["seconds"], _beside(name, facts, paper))
            for name, facts in found.items()
            if name in PAPER_NAMES
        ]
    part.facts = clock.facts()
    return part


def _rows_in(path: Path) -> int:
    import numpy as np

    return int(np.load(path, mmap_mode="r").shape[0])


def _csv_row(plan: Plan, n_rows: int, method: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "measured",
        "rows": n_rows,
        "features": plan.features,
        "k": plan.k,
        "method": method,
        "seconds": round(facts["seconds"], 2),
        "cpu_seconds": round(facts["cpu"], 2),
        "peak_mib": round(facts["peak"] / 2**20, 1),
        "accuracy": "truth not kept" if facts["accuracy"] is None else round(facts["accuracy"], 4),
    }


def _measured(found: dict[str, Any], paper: dict[str, Any], n_rows: int) -> str:
    head = ["method", "seconds", "CPU seconds", "peak memory", "accuracy"]
    head += ["the paper, 100,000,000 rows", "difference"]
    rows = []
    for name, facts in found.items():
        entry = paper.get(PAPER_NAMES.get(name, ""))
        accuracy = "not known for sim:" if facts["accuracy"] is None else f"{facts['accuracy']:.1%}"
        difference = "no pair: other rows"
        if entry is None:
            difference = "not in the paper"
        elif entry["rows"] == n_rows:
            difference = f"{facts['seconds'] - entry['seconds']:+.0f} s"
        rows.append(
            [
                NAMES[name],
                f"{facts['seconds']:.1f}",
                f"{facts['cpu']:.1f}",
                f"{facts['peak'] / 2**20:,.0f} MiB",
                accuracy,
                _paper_words(entry),
                difference,
            ]
        )
    return markdown_table(head, rows)


def _extrapolated(
    found: dict[str, Any], paper: dict[str, Any], n_rows: int, target: int
) -> list[str]:
    """Say what the measured seconds suggest for the paper's rows; nothing where they were run."""
    if n_rows >= target:
        return []
    rows = []
    for name, facts in found.items():
        sweeps = sum(facts["steps"].values())
        guess = facts["seconds"] - sweeps + sweeps * target / n_rows
        entry = paper.get(PAPER_NAMES.get(name, ""))
        gap = "not in the paper" if entry is None else f"{guess - entry['seconds']:+.0f} s"
        rows.append([NAMES[name], f"about {guess:.0f} s", _paper_words(entry), gap])
    head = ["method", "extrapolated seconds", "the paper", "difference"]
    return [
        f"**Extrapolated to {target:,} rows, not measured**: the sweeps' seconds times "
        f"{target / n_rows:g}, the rest as it is. A file that does not fit in memory is read from "
        "disk in each sweep, which this cannot know. The run itself: `python -m paper reproduce "
        "scale`; a measured one is in [benchmarks.md](benchmarks.md).",
        markdown_table(head, rows),
    ]


def _paper_words(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "not in the paper"
    memory = f", {entry['gb_per_process']} GB each" if "gb_per_process" in entry else ""
    return f"{entry['seconds']} s, {entry['processes']} processes{memory}"


def _beside(name: str, facts: dict[str, Any], paper: dict[str, Any]) -> str:
    words = _paper_words(paper[PAPER_NAMES[name]])
    return f"{NAMES[name]} takes less time than the paper: {facts['seconds']:.0f} s ({words})"


def _draw(found: dict[str, Any], n_rows: int, output: Output) -> None:
    with figure(output.image("scale"), 1, size=(5.2, 2.4)) as (_, (axis,)):
        left = [0.0] * len(found)
        names = [NAMES[name] for name in found]
        steps = list(dict.fromkeys(step for facts in found.values() for step in facts["steps"]))
        for step in steps:
            width = [facts["steps"].get(step, 0.0) for facts in found.values()]
            axis.barh(names, width, left=left, label=step)
            left = [a + b for a, b in zip(left, width, strict=True)]
        rest = [f["seconds"] - done for f, done in zip(found.values(), left, strict=True)]
        axis.barh(names, rest, left=left, label="start and end", color="#cccccc")
        axis.set(xlabel="seconds", title=f"{n_rows:,} rows, measured")
        axis.legend(fontsize=7)
