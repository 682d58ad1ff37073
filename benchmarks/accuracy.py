"""Compare biglp's defaults with what one would use instead, on the real data sets in BIGLP_DATA.

Nine data sets of at most 20,000 rows, 1 to 100 labels a class, ten draws of the labelled rows:
accuracy and balanced accuracy on the hidden labels go to a CSV file, line by line, so that a run
that was stopped goes on where it was. benchmarks/accuracy_page.py makes tables and plots of it.

Run with:  BIGLP_DATA=folder python benchmarks/accuracy.py [--draws 10] [--sets mnist,shuttle]
           [--methods biglp,5-NN] [--results docs/results/accuracy.csv].
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np
from accuracy_methods import METHODS, Problem

SETS = {
    "mnist": "mnist.npz",
    "fashion_mnist": "fashion_mnist.npz",
    "adult": "adult_a9a.npz",
    "higgs": "higgs_subset_18k.npz",
    "susy": "susy_subset_30k.npz",
    "protein": "protein_val_2871.npz",
    "kddcup99": "kddcup99_10pct.npz",
    "shuttle": "shuttle.npz",
    "skin": "skin_segmentation.npz",
}
LABELS = (1, 2, 5, 20, 100)
MAX_ROWS = 20_000
COLUMNS = ("data", "labels", "draw", "method", "accuracy", "balanced", "seconds")
BINS = ("data", "labels", "draw", "bin", "rows", "stated", "right")


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """At most MAX_ROWS random rows, without classes that occur once."""
    with np.load(folder / SETS[name]) as data:
        rows, truth = data["X"], data["y"]
    chosen = np.sort(np.random.default_rng(0).permutation(len(truth))[:MAX_ROWS])
    rows, truth = rows[chosen].astype(np.float32), truth[chosen]
    several = np.bincount(truth)[truth] >= 2
    return rows[several], np.unique(truth[several], return_inverse=True)[1]


def draw(truth: np.ndarray, each: int, seed: int) -> np.ndarray:
    """Labels of ``each`` random rows a class (at most half of a class), -1 elsewhere."""
    rng = np.random.default_rng(1000 + seed)
    labels = np.full(len(truth), -1)
    for code in range(truth.max() + 1):
        members = np.flatnonzero(truth == code)
        size = min(each, max(1, len(members) // 2))
        labels[rng.choice(members, size, replace=False)] = code
    return labels


def scores(predicted: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Accuracy and mean recall of the classes, in percent."""
    right = predicted == truth
    recalls = [right[truth == code].mean() for code in np.unique(truth)]
    return 100 * float(right.mean()), 100 * float(np.mean(recalls))


def reliability(stated: np.ndarray, right: np.ndarray) -> list[tuple[int, int, float, float]]:
    """Bin, rows, mean stated probability and share of right answers, for tenths."""
    bins = np.minimum((10 * stated).astype(int), 9)
    lines = []
    for number in np.unique(bins):
        here = bins == number
        found = round(float(stated[here].mean()), 4), round(float(right[here].mean()), 4)
        lines.append((int(number), int(here.sum()), *found))
    return lines


def append(path: Path, columns: tuple[str, ...], lines: list[list[object]]) -> None:
    """Add lines to a CSV file, with a header when it is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([columns] * new + lines)


def run(folder: Path, results: Path, names: list[str], methods: list[str], draws: int) -> None:
    """Add to the results what they do not hold yet."""
    results.parent.mkdir(parents=True, exist_ok=True)
    known = set()
    if results.exists():
        with results.open(newline="") as file:
            known = {tuple(line[:4]) for line in csv.reader(file)}
    for name in names:
        rows, truth = load(folder, name)
        problem = Problem(rows)
        for each in LABELS:
            for seed in range(draws):
                labels = draw(truth, each, seed)
                hidden, problem.draw = labels < 0, seed
                for method in methods:
                    case = (name, str(each), str(seed), method)
                    if case in known:
                        continue
                    began = time.perf_counter()
                    predicted = METHODS[method](problem, labels)
                    seconds = time.perf_counter() - began
                    found = scores(predicted[hidden], truth[hidden])
                    if method == "biglp":
                        stated, right = problem.stated[hidden], (predicted == truth)[hidden]
                        bins = [[*case[:3], *line] for line in reliability(stated, right)]
                        append(results.with_name("calibration.csv"), BINS, bins)
                    figures = [f"{value:.2f}" for value in (*found, seconds)]
                    append(results, COLUMNS, [[*case, *figures]])
            print(f"{name} {each}: done", flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--results", type=Path, default=Path("docs/results/accuracy.csv"))
    options = parser.parse_args()
    folder = os.environ.get("BIGLP_DATA")
    if folder is None:
        raise SystemExit("BIGLP_DATA is not set; it names the folder with the data sets.")
    warnings.simplefilter("ignore")
    names, methods = options.sets.split(","), options.methods.split(",")
    run(Path(folder), options.results, names, methods, options.draws)


if __name__ == "__main__":
    main()
