"""MNIST with default settings: all ten digits from few labels a class, and 7 v 9 from 16 labels.

Run with:  BIGLP_DATA=folder python benchmarks/mnist.py [--draws 5].
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

from biglp import LowRankLabelPropagation


def fit(rows: np.ndarray, truth: np.ndarray, known: np.ndarray) -> tuple[float, float]:
    """Accuracy on the hidden labels in percent, and seconds."""
    labels = np.full(len(truth), -1)
    labels[known] = truth[known]
    began = time.perf_counter()
    found = LowRankLabelPropagation().fit(rows, labels).transduction_
    seconds = time.perf_counter() - began
    return 100 * float((found == truth)[labels < 0].mean()), seconds


def show(name: str, results: list[tuple[float, float]]) -> None:
    """Print one line of the table."""
    right, seconds = np.array(results).T
    print(
        f"| {name} | {right.mean():.1f} | {right.std():.1f} | {right.min():.1f} | "
        f"{seconds.mean():.1f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    draws = parser.parse_args().draws
    folder = os.environ.get("BIGLP_DATA")
    if folder is None:
        raise SystemExit("BIGLP_DATA is not set; it names the folder that holds mnist.npz.")
    with np.load(Path(folder) / "mnist.npz") as data:
        rows, truth = data["X"], data["y"].astype(int)
    warnings.simplefilter("ignore")
    print("| labels | mean | deviation | worst | seconds |\n|---|---|---|---|---|")
    for each in (1, 5, 50):
        results = []
        for seed in range(draws):
            rng = np.random.default_rng(1000 + seed)
            members = [np.flatnonzero(truth == digit) for digit in range(10)]
            known = np.concatenate([rng.choice(m, each, replace=False) for m in members])
            results.append(fit(rows, truth, known))
        show(f"70,000 rows, {each} a class", results)
    pair = np.isin(truth, (7, 9))
    rows, truth = rows[pair], truth[pair]
    for first, name in ((0, "draws 0 to 9"), (100, "draws 100 to 109")):
        results = []
        for seed in range(first, first + 10):
            known = np.random.default_rng(seed).choice(len(truth), 16, replace=False)
            results.append(fit(rows, truth, known))
        show(f"7 v 9, 16 at random, {name}", results)


if __name__ == "__main__":
    main()
