"""What each effort takes and brings: accuracy and processor seconds on the sets in BIGLP_DATA.

Run with:  BIGLP_DATA=folder python benchmarks/effort.py [--sets mnist,shuttle] [--rows 20000]
           [--labels 10] [--draws 2]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

from accuracy_data import draw_per_class, load
from biglp import LowRankLabelPropagation

EFFORTS = ("fast", "balanced", "best")


def main() -> None:
    """Print a table, a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="mnist,fashion_mnist,shuttle,bank,susy,ag_news")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--labels", type=int, default=10, help="a class")
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(os.environ["BIGLP_DATA"])
    print("| set | " + " | ".join(f"{effort}: accuracy, seconds" for effort in EFFORTS) + " |")
    print("|---|" + "---|" * len(EFFORTS))
    for name in options.sets.split(","):
        rows, truth = load(folder, name, options.rows)
        found: dict[str, list[tuple[float, float]]] = {effort: [] for effort in EFFORTS}
        for draw in range(options.draws):
            labels = draw_per_class(truth, options.labels, draw)
            for effort in EFFORTS:
                began = time.process_time()
                model = LowRankLabelPropagation(effort=effort).fit(rows, labels)
                seconds = time.process_time() - began
                hidden = labels < 0
                right = np.mean(model.transduction_[hidden] == truth[hidden])
                found[effort].append((100 * float(right), seconds))
        cells = [np.array(found[effort]).mean(axis=0) for effort in EFFORTS]
        told = " | ".join(f"{right:.1f} %, {seconds:.1f} s" for right, seconds in cells)
        print(f"| {name}, {rows.shape[0]:,} rows | {told} |", flush=True)


if __name__ == "__main__":
    main()
