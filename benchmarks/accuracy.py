"""Compare biglp's defaults with what one would use instead, on the real data sets in BIGLP_DATA.

Thirteen data sets (accuracy_data.py) with 1,500, 6,000 and 20,000 rows, 1 to 100 labels a class and
20 to 2,000 labels drawn at random (at most half of the rows), ten draws: accuracy, balanced
accuracy, area under the ROC curve, log-loss and calibration error on the hidden rows go to a CSV
file, line by line, so that a run that was stopped goes on where it was. For biglp the mean
confidence and, where its report has one, the estimate of accuracy go along, and how often
probabilities are right to ``<results>_calibration.csv``. benchmarks/accuracy_page.py makes tables
and plots of it.

Processes (``--workers``) share the cells out: a cell is a set, a number of rows, labels and a draw,
with all methods on it; first draws come first. With several workers each has one thread, so that
seconds are those of one core. What takes long and needs no labels, such as exact neighbours, is
computed once and kept in ``--cache``, a temporary folder by default; seconds leave it out.

Run with:  BIGLP_DATA=folder python benchmarks/accuracy.py [--workers 2] [--draws 10]
           [--sets mnist,bank] [--sizes 1500,6000] [--methods biglp,5-NN] [--labels 5,20r]
           (5 a class, 20 at random) [--results docs/results/accuracy.csv] [--limit 600]
"""

from __future__ import annotations

import argparse
import csv
import heapq
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from accuracy_data import AT_RANDOM, DRAWS, PER_CLASS, SETS, SIZES, first_rows, sizes_of
from accuracy_methods import METHODS, ON_GRAPH, OURS, Problem
from accuracy_scores import figures, reliability

CASE = ("data", "rows", "how", "labels", "draw", "method")
FIGURES = ("accuracy", "balanced", "auc", "log_loss", "calibration", "confidence", "seconds")
COLUMNS = (*CASE, *FIGURES, "estimate", "low", "high")
BINS = (*CASE[:-1], "bin", "hidden", "stated", "right")


@dataclass(frozen=True, order=True)
class Cell:
    """One draw of labels on a part of a data set."""

    draw: int
    name: str
    size: int
    how: str
    count: int

    def case(self) -> tuple[str, ...]:
        """Its columns in the results."""
        return self.name, str(self.size), self.how, str(self.count), str(self.draw)


@dataclass(frozen=True)
class Place:
    """What a worker must know."""

    data: Path
    cache: Path
    engine: str


@lru_cache(maxsize=8)
def problem_of(place: Place, name: str, size: int) -> Problem:
    """The rows, kept between cells."""
    problem = Problem(place.data, place.cache, name, size)
    problem.engine = place.engine
    return problem


def prepare(place: Place, name: str, size: int, graph: bool) -> tuple[str, int]:
    """Compute what all cells of a part need."""
    problem_of(place, name, size).prepare(graph=graph)
    return name, size


def estimate_of(report: object) -> tuple[object, object, object]:
    """The accuracy that biglp expects and its interval, in percent, where its report has one."""
    try:
        found = report["estimated_accuracy"]
        value = found.get("accuracy", found.get("value")) if isinstance(found, dict) else found
        where = found if isinstance(found, dict) else report
        ends = where.get("interval") or (where.get("low"), where.get("high"))
        low, high = ends
        return tuple(round(100 * float(x), 2) for x in (value, low, high))
    except (KeyError, TypeError, ValueError, AttributeError):
        return "", "", ""


def measure(place: Place, cell: Cell, methods: list[str]) -> tuple[list[list], list[list]]:
    """Lines of the results and of biglp's reliability."""
    warnings.simplefilter("ignore")
    problem = problem_of(place, cell.name, cell.size)
    labels = DRAWS[cell.how](problem.truth, cell.count, cell.draw)
    hidden, problem.draw = labels < 0, cell.draw
    truth = problem.truth[hidden]
    lines, bins = [], []
    for method in methods:
        began = time.perf_counter()
        stated = METHODS[method](problem, labels)[hidden]
        seconds = time.perf_counter() - began
        found = {**figures(stated, truth), "seconds": seconds}
        shown = [f"{found[name]:.{4 if name == 'log_loss' else 2}f}" for name in FIGURES]
        estimate = estimate_of(problem.report) if method == OURS else ("", "", "")
        lines.append([*cell.case(), method, *shown, *estimate])
        if method == OURS:
            surest, right = stated.max(axis=1), stated.argmax(axis=1) == truth
            bins = [[*cell.case(), *line] for line in reliability(surest, right)]
    return lines, bins


def append(path: Path, columns: tuple[str, ...], lines: list[list]) -> None:
    """Add lines to a CSV file, with a header when it is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([columns] * new + lines)


def missing(results: Path, cells: list[Cell], methods: list[str]) -> dict[Cell, list[str]]:
    """The methods that the results do not hold yet, by cell."""
    known = set()
    if results.exists():
        with results.open(newline="") as file:
            known = {tuple(line[: len(CASE)]) for line in csv.reader(file)}
    todo = {cell: [m for m in methods if (*cell.case(), m) not in known] for cell in cells}
    return {cell: left for cell, left in todo.items() if left}


def cells_of(folder: Path, options: argparse.Namespace) -> Iterator[Cell]:
    """Every cell that is asked for."""
    for name in options.sets.split(","):
        total = len(first_rows(folder, name)[1])
        asked = [int(size) for size in options.sizes.split(",")]
        for size in (size for size in sizes_of(total) if size in asked):
            for label in options.labels.split(","):
                how, count = ("random" if label.endswith("r") else "class"), int(label.strip("r"))
                if how == "class" or count <= min(size, total) // 2:
                    for draw in range(options.first, options.draws):
                        yield Cell(draw, name, size, how, count)


def run(place: Place, todo: dict[Cell, list[str]], options: argparse.Namespace) -> None:
    """Measure what is left to do, in ``options.workers`` processes."""
    bins = options.results.with_name(options.results.stem + "_calibration.csv")
    began, done = time.monotonic(), 0
    graph = any(set(left) & ON_GRAPH for left in todo.values())
    # Large parts first: their neighbours take longest.
    parts = sorted({(cell.name, cell.size) for cell in todo}, key=lambda part: -part[1])
    ready: list[Cell] = []
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        flying: dict[Future, str] = {}
        for part in parts:
            flying[pool.submit(prepare, place, *part, graph)] = "part"
        while flying:
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                if flying.pop(future) == "part":
                    part = future.result()
                    for cell in todo:
                        if (cell.name, cell.size) == part:
                            heapq.heappush(ready, cell)
                    continue
                lines, more = future.result()
                append(options.results, COLUMNS, lines)
                if more:
                    append(bins, BINS, more)
                done += 1
                if done % 50 == 0:
                    print(
                        f"{done} of {len(todo)} cells, {time.monotonic() - began:.0f} s", flush=True
                    )
            if time.monotonic() - began > options.limit:
                flying = {future: kind for future, kind in flying.items() if not future.cancel()}
                ready = []
            while ready and len(flying) < 2 * options.workers:
                cell = heapq.heappop(ready)
                flying[pool.submit(measure, place, cell, todo[cell])] = "cell"
    print(f"{done} of {len(todo)} cells, {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """Run what is asked for."""
    every = [*map(str, PER_CLASS), *(f"{count}r" for count in AT_RANDOM)]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first draw")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--labels", default=",".join(every))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds until it stops")
    parser.add_argument("--cache", type=Path, help="folder that keeps neighbours for the next run")
    parser.add_argument("--results", type=Path, default=Path("docs/results/accuracy.csv"))
    options = parser.parse_args()
    folder = os.environ.get("BIGLP_DATA")
    if folder is None:
        raise SystemExit("BIGLP_DATA is not set; it names the folder with the data sets.")
    options.results.parent.mkdir(parents=True, exist_ok=True)
    cells = list(cells_of(Path(folder), options))
    todo = missing(options.results, cells, options.methods.split(","))
    if options.workers > 1:
        # Read by the workers when they load NumPy.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[variable] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        cache = options.cache or Path(temporary)
        engine = "serial" if options.workers > 1 else "threads"
        run(Place(Path(folder), cache, engine), todo, options)


if __name__ == "__main__":
    main()
