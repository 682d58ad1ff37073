"""Default fits in this tree and in another one, in turn: least processor seconds, and their ratio.

Run with:  python benchmarks/turns.py FOLDER [--repeat 5] [--only digits,wide,long]

``FOLDER`` holds another checkout, whose loops are compiled (``python hatch_build.py`` there).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
# Rows, features, classes and labels of made-up rows, and fits in a process.
CASES = {"digits": (1000, 64, 10, 100, 8), "wide": (20_000, 784, 10, 100, 2)}
CASES["long"] = (1_000_000, 100, 5, 60, 1)


def least_seconds(case: str) -> float:
    """Fit rows a few times."""
    from biglp import LowRankLabelPropagation

    n_rows, n_features, n_classes, n_labels, n_fits = CASES[case]
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, n_rows)
    if case == "digits":
        from sklearn.datasets import load_digits

        rows, truth = (part[:n_rows] for part in load_digits(return_X_y=True))
    else:
        centres = rng.normal(size=(n_classes, n_features)) * (0.35 if case == "wide" else 1.2)
        rows = centres[truth] + rng.normal(size=(n_rows, n_features))
    rows = rows.astype(np.float32)
    labels = np.where(np.arange(n_rows) < n_labels, truth, -1)
    seconds = []
    for _ in range(n_fits):
        began = time.process_time()
        LowRankLabelPropagation(random_state=0).fit(rows, labels)
        seconds.append(time.process_time() - began)
    return min(seconds)


def main() -> None:
    """Print the least of each case in both trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        print(least_seconds(options.only))
        return
    for case in options.only.split(","):
        taken: dict[Path, list[float]] = {options.folder.resolve(): [], ROOT: []}
        for _ in range(options.repeat):
            for tree, seconds in taken.items():
                command = [sys.executable, __file__, str(tree), "--one", "--only", case]
                environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
                told = subprocess.run(command, env=environment, capture_output=True, check=True)
                seconds.append(float(told.stdout))
        before, after = map(min, taken.values())
        print(f"{case}: {before:.3f} and {after:.3f} processor seconds, {after / before:.2f}")


if __name__ == "__main__":
    main()
