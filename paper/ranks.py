"""Real MPI jobs on simulated rows: seconds and memory of each rank.

A job is started by the mpiexec beside this Python and runs this module as a program on each rank.
Times are those of whole runs from rows to files of labels, without the start of Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biglp._core.errors import EngineError, MissingExtraError

METHODS: dict[str, dict[str, Any]] = {
    "random": {"factor": "nystrom", "landmarks": "random"},
    "kmeans-full": {"factor": "nystrom", "landmarks": "kmeans-full"},
    "anchors": {"factor": "anchors", "landmarks": "kmeans"},
    "glnp": {"factor": "glnp", "factor_params": {"max_iter": 30, "tol": 1e-12}},
}
FIXED = {"n_landmarks": 20, "alpha": 0.9, "class_balance": "mass", "random_state": 0}
PAPER_NAMES = {"random": "nystrom-random", "kmeans-full": "nystrom-kmeans", "glnp": "glnp"}


@dataclass(frozen=True)
class RankPlan:
    """Which jobs are run: methods, numbers of ranks, and rows for each method."""

    methods: tuple[str, ...] = ("random", "kmeans-full", "glnp")
    ranks: tuple[int, ...] = (1, 2, 4)
    rows: str = "10M"
    glnp_rows: str = "1M"
    repeat: int = 2

    def rows_of(self, method: str) -> str:
        """Rows that a method is run on; GLNP sweeps over them 30 times."""
        return (
            self.glnp_rows if "max_iter" in METHODS[method].get("factor_params", {}) else self.rows
        )


FULL = RankPlan()
QUICK = RankPlan(rows="1M", glnp_rows="200K", repeat=1)
_measured: dict[RankPlan, list[dict[str, Any]]] = {}


def measure(plan: RankPlan, say: Any) -> list[dict[str, Any]]:
    """Best run of each method and number of ranks; run time and memory share these jobs."""
    if plan in _measured:
        return _measured[plan]
    require_mpiexec()
    found = []
    with tempfile.TemporaryDirectory(prefix="biglp-ranks-") as folder:
        for method in plan.methods:
            files = write_rows(Path(folder), plan.rows_of(method))
            for count in plan.ranks:
                runs = [launch(count, method, files) for _ in range(plan.repeat)]
                best = min(runs, key=lambda run: run["seconds"])
                found.append(
                    {"method": method, "rows": plan.rows_of(method), "ranks": count, **best}
                )
                say(f"  {method}, {count} ranks: {best['seconds']:.2f} s")
    _measured[plan] = found
    return found


def require_mpiexec() -> Path:
    """Return the launcher beside this Python, or explain how to get it."""
    launcher = Path(sys.executable).with_name("mpiexec")
    if not launcher.exists():
        raise MissingExtraError(
            f"there is no mpiexec beside {Path(sys.executable).name}, so no MPI job can be "
            'started; install it with: pip install "biglp[mpich]"'
        )
    return launcher


def write_rows(folder: Path, rows: str, features: int = 100) -> tuple[str, str | None]:
    """Write simulated rows once, and read them so that they are in the page cache."""
    from biglp._rows.simulated import Simulation, write_simulation

    path = folder / f"rows-{rows}.npy"
    if not path.exists():
        write_simulation(path, Simulation.parse(f"sim:{rows}x{features}"), n_threads=2)
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass
    return str(path), str(path.with_name(f"{path.stem}.labels.npy"))


def launch(
    n_ranks: int, method: str, files: tuple[str, str | None], memory: str = "auto"
) -> dict[str, Any]:
    """Run one job under mpiexec and return what rank 0 reports."""
    job = {"method": method, "rows": files[0], "labels": files[1], "memory": memory}
    program = [sys.executable, "-m", "paper.ranks", json.dumps(job)]
    command = [str(require_mpiexec()), "-n", str(n_ranks), *program]
    began, busy, own = time.perf_counter(), busy_seconds(), own_seconds()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EngineError(
            f"an MPI job of {n_ranks} ranks ended with {done.returncode}: "
            f"{(done.stderr or done.stdout).strip()[-500:]}"
        )
    others = (busy_seconds() - busy - (own_seconds() - own)) / (time.perf_counter() - began)
    return {**json.loads(done.stdout.splitlines()[-1]), "others": max(others, 0.0)}


def busy_seconds() -> float:
    """Processor seconds of all programs on this machine since it started; 0 where unknown."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system = map(int, file.readline().split()[1:4])
    except OSError:
        return 0.0
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor seconds of the jobs that were started here and have ended."""
    import resource  # Windows has none, and no mpiexec that this is about

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_as_rank(job: dict[str, Any]) -> dict[str, Any] | None:
    """Fit from file to files on all ranks of this MPI job, one thread each; rank 0 reports."""
    import resource
    import warnings

    from mpi4py import MPI  # noqa: TID251  figures of all ranks are gathered around the engine

    from biglp._core.memory import PeakMemory
    from biglp._engines.mpi import MpiEngine
    from biglp._jobs import FitJob

    warnings.simplefilter("ignore")
    engine, comm = MpiEngine(n_threads=1), MPI.COMM_WORLD
    out = engine.once(lambda: tempfile.mkdtemp(prefix="biglp-ranks-out-"))
    fit = FitJob(
        (job["rows"],),
        Path(out),
        labels=(job["labels"],),
        engine=engine,
        parameters={**FIXED, **METHODS[job["method"]], "memory": job["memory"]},
        report=False,  # a page for people, which rank 0 writes alone
    )
    comm.Barrier()
    cpu, began = time.process_time(), time.perf_counter()
    with PeakMemory() as peak:
        summary = fit.run()
    comm.Barrier()
    report = {
        "seconds": comm.allreduce(time.perf_counter() - began, MPI.MAX),
        "cpu": comm.allreduce(time.process_time() - cpu, MPI.MAX),
        "peaks": comm.allgather(peak.peak),
        "largest_rss": comm.allgather(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
        "bytes": dict(engine.bytes_sent),
        "steps": summary["steps"],
    }
    if comm.rank != 0:
        return None
    for path in Path(out).iterdir():
        path.unlink()
    Path(out).rmdir()
    return report


if __name__ == "__main__":
    reported = run_as_rank(json.loads(sys.argv[1]))
    if reported is not None:
        sys.stdout.write(json.dumps(reported) + "\n")
