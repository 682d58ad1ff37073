"""How biglp scales over MPI ranks: time, bytes and memory, measured and as formulas.

::

    python benchmarks/scaling.py speed                    # 10 M × 100, 1 and 2 ranks of 1 thread
    python benchmarks/scaling.py speed --methods glnp     # 1 M × 100
    python benchmarks/scaling.py dask --methods random anchors  # 10 M × 100, 2 workers and 2 ranks
    python benchmarks/scaling.py bytes
    python benchmarks/scaling.py memory --rows 100M       # 4 ranks, simulated rows

Every figure comes from a job started by the mpiexec beside this Python. Times are those of whole
runs from file to files, without the start of Python. When other programs keep the processors busy
("others" is how many of them, in the run that counted), the processor seconds of the busiest rank
say more than those on the clock; both are printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from biglp._jobs import FitJob
from history import keep
from paper.pages import hardware
from paper.ranks import FIXED, METHODS, busy_seconds, launch, write_rows

PAPER_SPEEDUP, PAPER_PROCESSES = 7.67, 8
HEAD = "method         rows ranks  seconds   cpu s  ratio of cpu s efficiency others  by step"
BYTES_PER_NUMBER = 25
"""Three slices of 8 bytes and a level of 1: sums are exact and have the same bits everywhere."""


def main() -> None:
    """Read the command line and run one part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["speed", "dask", "bytes", "memory"])
    parser.add_argument("--rows", default=None, help="rows, such as 10M")
    parser.add_argument("--ranks", type=int, nargs="+", default=None)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["random", "kmeans-full"])
    parser.add_argument("--repeat", type=int, default=2, help="runs of each; the best counts")
    parser.add_argument(
        "--patience", type=float, default=0.0, help="seconds to wait for a quiet machine, each run"
    )
    parser.add_argument("--memory", default="1GB", help="budget of a rank in the memory part")
    parser.add_argument("--folder", help="where the rows are written and kept")
    parser.add_argument("--keep", action="store_true", help="append ratios to the history")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="biglp-scaling-") as temporary:
        folder = Path(given.folder or temporary)
        parts = {"speed": speed, "dask": beside_dask, "bytes": count_bytes, "memory": memory}
        parts[given.part](given, folder)


def speed(given: argparse.Namespace, folder: Path) -> None:
    """Time each method on several numbers of ranks, in turns, and print the best of each."""
    ranks = given.ranks or [1, 2]
    print(f"{hardware()} before it began")
    print(HEAD)
    for method in given.methods:
        rows = given.rows or ("1M" if method == "glnp" else "10M")
        files = write_rows(folder, rows)
        runs: dict[int, list[dict[str, Any]]] = {count: [] for count in ranks}
        for _ in range(given.repeat):
            for count in ranks:
                wait_until_quiet(given.patience)
                runs[count].append(launch(count, method, files))
        best = {count: min(found, key=lambda run: run["seconds"]) for count, found in runs.items()}
        work = {count: min(run["cpu"] for run in found) for count, found in runs.items()}
        for count in ranks:
            ratio = best[ranks[0]]["seconds"] / best[count]["seconds"]
            steps = ", ".join(f"{s['step']} {s['seconds']:.2f}" for s in best[count]["steps"])
            print(
                f"{method:12} {rows:>6} {count:5} {best[count]['seconds']:8.2f} {work[count]:7.2f} "
                f"{ratio:6.2f} {work[ranks[0]] / work[count]:8.2f} "
                f"{ratio * ranks[0] / count:10.1%} {best[count]['others']:6.2f}  {steps}",
                flush=True,
            )
        if given.keep:
            name = f"{method}, %d ranks beside {ranks[0]}, processor"
            keep({name % count: work[ranks[0]] / work[count] for count in ranks[1:]})
    paper = PAPER_SPEEDUP / PAPER_PROCESSES
    print(f"The paper: {PAPER_SPEEDUP} times on {PAPER_PROCESSES} processes, {paper:.1%}.")


def beside_dask(given: argparse.Namespace, folder: Path) -> None:
    """Time each method on Dask workers and on as many MPI ranks, one thread each, in turns."""
    from distributed import Client, LocalCluster  # noqa: TID251

    (count,) = given.ranks or [2]
    print(f"{hardware()} before it began")
    environment = dict(os.environ)
    cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
    os.environ.clear()  # Dask leaves settings of its workers there, which would slow the ranks down
    os.environ.update(environment)
    with cluster, Client(cluster) as client:
        for method in given.methods:
            files = write_rows(folder, given.rows or ("1M" if method == "glnp" else "10M"))
            fit_on_dask(client, method, write_rows(folder, "20K"), folder)  # workers load biglp
            ranks, workers = [], []
            for _ in range(given.repeat):
                wait_until_quiet(given.patience)
                ranks.append(launch(count, method, files)["seconds"])
                wait_until_quiet(given.patience)
                workers.append(fit_on_dask(client, method, files, folder))
            ratio = min(workers) / min(ranks)
            print(
                f"{method:12} {count} ranks {min(ranks):.2f} s, {count} Dask workers "
                f"{min(workers):.2f} s, {ratio:.2f} times as long",
                flush=True,
            )
            if given.keep:
                keep({f"{method}, {count} Dask workers beside as many ranks": ratio})


def fit_on_dask(client: Any, method: str, files: tuple[str, str | None], folder: Path) -> float:
    """Seconds of a run from file to files, as :func:`launch` times those of MPI."""
    fit = FitJob(
        (files[0],),
        folder / "out",
        labels=(files[1],),
        engine=client,
        parameters={**FIXED, **METHODS[method]},
        overwrite=True,
        report=False,
    )
    began = time.perf_counter()
    fit.run()
    return time.perf_counter() - began


def count_bytes(given: argparse.Namespace, folder: Path) -> None:
    """Compare the bytes that a rank sends in each sweep with the formula, at two sizes."""
    k, m, c = int(FIXED["n_landmarks"]), 100, 2
    formulas = {
        "k-means 1": ("k·m + k + 1", k * m + k + 1),
        "degrees": ("r", k),
        "Gram": ("r² + r·c + r + 1", k * k + k * c + k + 1),
        "GLNP start": ("k·m + k² + 1", k * m + k * k + 1),
        "GLNP 1": ("k·m + 2k² + 5", k * m + 2 * k * k + 5),
        "labels": ("counts of its blocks", 0),
    }
    print(f"k = r = {k}, m = {m}, c = {c}; {BYTES_PER_NUMBER} bytes a number")
    for method in ("kmeans-full", "glnp"):
        for rows in ("50K", "400K"):
            for count in given.ranks or [2, 4]:
                sent = launch(count, method, (f"sim:{rows}x{m}", None))["bytes"]
                for sweep in sorted(formulas.keys() & sent.keys()):  # iterations are all alike
                    text, numbers = formulas[sweep]
                    times = sent[sweep] / (BYTES_PER_NUMBER * numbers) if numbers else 1
                    where = f"{method:12} {rows:>5} {count} ranks {sweep:10}"
                    print(f"{where} {sent[sweep]:9,} bytes = {times:g} × ({text})")


def memory(given: argparse.Namespace, folder: Path) -> None:
    """Memory of each rank while it labels simulated rows."""
    rows = given.rows or "100M"
    for method in given.methods:
        for count in given.ranks or [4]:
            found = launch(count, method, (f"sim:{rows}x100", None), memory=given.memory)
            peaks = ", ".join(f"{peak / 2**30:.2f}" for peak in found["peaks"])
            what = f"{method}: {rows} × 100, {count} ranks, {found['seconds']:.0f} s"
            print(f"{what}; GB a rank: {peaks}", flush=True)


def wait_until_quiet(patience: float) -> None:
    """Wait until other programs have used little of the processors for a second."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        busy = busy_seconds()
        time.sleep(1.0)
        if busy_seconds() - busy < 0.2:
            return


if __name__ == "__main__":
    main()
