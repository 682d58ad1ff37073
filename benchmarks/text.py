"""Text as CSR rows: accuracy and seconds of biglp's defaults, beside two ways round them.

AG News as tf-idf (8,000 × 10,818) and a pair of newsgroups as word counts (1,943 × 3,289), all
rows, 1, 5 and 20 labels a class. Beside ``fit(X, y)`` on the CSR rows: biglp on 128 leading
directions of tf-idf rows, of unit length (what one would do by hand), and logistic regression on
the tf-idf rows that have a label. Seconds are those of a fit; the directions by hand are found
before the clock runs.

Run with:  BIGLP_DATA=folder python benchmarks/text.py [--draws 10].
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from accuracy_data import draw_per_class
from accuracy_methods import Problem
from biglp import LowRankLabelPropagation

GOALS = {"ag_news": {1: 45, 5: 67, 20: 75}, "pcmac": {1: 62, 5: 66, 20: 77}}
"""Accuracy that so many labels a class should give, in percent."""


def by_hand(problem: Problem, labels: np.ndarray) -> np.ndarray:
    """Class probabilities by biglp on 128 leading directions of unit length."""
    model = LowRankLabelPropagation(random_state=problem.draw).fit(problem.level, labels)
    return np.asarray(model.label_distributions_)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    folder = os.environ.get("BIGLP_DATA")
    if folder is None:
        raise SystemExit("BIGLP_DATA is not set; it names the folder with the data sets.")
    warnings.simplefilter("ignore")
    ways = {"CSR": Problem.biglp, "by hand": by_hand, "logistic": Problem.logistic}
    print("| data | labels a class | biglp | goal | seconds | by hand | seconds | logistic |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        for name, goals in GOALS.items():
            problem = Problem(Path(folder), Path(cache), name, 20_000)
            problem.prepare(graph=False)
            for each, goal in goals.items():
                right, seconds = {way: [] for way in ways}, {way: [] for way in ways}
                for problem.draw in range(draws):
                    labels = draw_per_class(problem.truth, each, problem.draw)
                    for way, method in ways.items():
                        began = time.perf_counter()
                        found = method(problem, labels).argmax(axis=1)
                        seconds[way].append(time.perf_counter() - began)
                        right[way].append(100 * (found == problem.truth)[labels < 0].mean())
                mean = {way: f"{np.mean(values):.1f}" for way, values in right.items()}
                took = {way: f"{np.mean(values):.1f}" for way, values in seconds.items()}
                print(
                    f"| {name} | {each} | {mean['CSR']} | {goal} | {took['CSR']} | "
                    f"{mean['by hand']} | {took['by hand']} | {mean['logistic']} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
