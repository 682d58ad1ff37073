"""MNIST with default settings: all ten digits from few labels a class, and 7 v 9 from 16 labels.

70,000 rows (7 v 9: 14,251) of raw pixels, as bytes. One line a task: mean, standard deviation and
worst accuracy on the unlabelled rows in percent, mean and longest seconds of a fit, and what the
task should reach. Landmarks are drawn anew for each draw of labels.

Run with:  BIGLP_DATA=folder python benchmarks/mnist.py [--draws 10].
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

from biglp import LowRankLabelPropagation

GOALS = {1: 86, 5: 93, 50: 96}
"""Accuracy that so many labels a class should give, in percent."""
PAIR_GOAL, MOST_SECONDS = 96, 10
HEAD = ("task", "draws", "mean", "deviation", "worst", "goal", "seconds", "longest")
WIDTHS = (35, 5, 5, 9, 5, 4, 7, 7)


def fit(rows: np.ndarray, truth: np.ndarray, known: np.ndarray, seed: int) -> tuple[float, float]:
    """Accuracy on the hidden labels in percent, and seconds."""
    labels = np.full(len(truth), -1)
    labels[known] = truth[known]
    began = time.perf_counter()
    found = LowRankLabelPropagation(random_state=seed).fit(rows, labels).transduction_
    seconds = time.perf_counter() - began
    return 100 * float((found == truth)[labels < 0].mean()), seconds


def line(*cells: object) -> None:
    """Print one line of the table, in columns."""
    shown = [str(cell).ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)]
    print("| " + " | ".join(shown) + " |", flush=True)


def show(name: str, goal: int, results: list[tuple[float, float]]) -> None:
    """Print what was found for one task."""
    right, seconds = np.array(results).T
    figures = [f"{value:.1f}" for value in (right.mean(), right.std(), right.min())]
    times = [f"{value:.1f}" for value in (seconds.mean(), seconds.max())]
    line(name, len(right), *figures, goal, *times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    folder = os.environ.get("BIGLP_DATA")
    if folder is None:
        raise SystemExit("BIGLP_DATA is not set; it names the folder that holds mnist.npz.")
    with np.load(Path(folder) / "mnist.npz") as data:
        rows, truth = data["X"], data["y"].astype(int)
    warnings.simplefilter("ignore")
    print(f"A fit of 70,000 rows should take at most {MOST_SECONDS} s on 2 cores.\n")
    line(*HEAD)
    line(*("-" * width for width in WIDTHS))
    members = [np.flatnonzero(truth == digit) for digit in range(10)]
    for each, goal in GOALS.items():
        results = []
        for seed in range(draws):
            rng = np.random.default_rng(1000 + seed)
            known = np.concatenate([rng.choice(m, each, replace=False) for m in members])
            results.append(fit(rows, truth, known, seed))
        show(f"70,000 rows, {each} a class", goal, results)
    pair = np.isin(truth, (7, 9))
    rows, truth = rows[pair], truth[pair]
    for first in (0, 100):
        results = []
        for seed in range(first, first + draws):
            known = np.random.default_rng(seed).choice(len(truth), 16, replace=False)
            results.append(fit(rows, truth, known, seed))
        last = first + draws - 1
        show(f"7 v 9, 16 at random, draws {first}-{last}", PAIR_GOAL, results)


if __name__ == "__main__":
    main()
