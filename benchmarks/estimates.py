"""What biglp's estimate of its own accuracy is worth, with random and with suggested labels.

On every data set (at most ``--rows`` rows) labels are given in two ways up to 50, 100, 200 and 500:
drawn at random from all rows, or twenty at random and then in rounds by ``suggest``. After each
count the estimate in the report is compared with the accuracy on the rows without a label. One line
a draw goes to a CSV file; a run that was stopped goes on. The table that is printed has, for each
way and count, the mean absolute error and the mean difference in points, and how often the accuracy
lies in the interval (90 % is meant).

Run with:  BIGLP_DATA=folder python benchmarks/estimates.py [--draws 5] [--rows 6000]
           [--sets mnist,bank] [--results docs/results/estimates.csv].
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from pathlib import Path

import numpy as np
from accuracy import append, estimate_of
from accuracy_data import SETS, Rows, draw_at_random, load

from biglp import LowRankLabelPropagation

COUNTS = (50, 100, 200, 500)
START = 20
WAYS = ("random", "suggested")
COLUMNS = ("data", "rows", "way", "draw", "labels", "accuracy", "estimate", "low", "high")


def measure(rows: Rows, truth: np.ndarray, way: str, draw: int) -> list[list[object]]:
    """Labels, accuracy, estimate and ends of its interval, for each count."""
    given = draw_at_random(truth, START, draw)
    known = given >= 0
    others = np.random.default_rng(draw).permutation(np.flatnonzero(~known))
    model = LowRankLabelPropagation(random_state=draw).fit(rows, given)
    lines: list[list[object]] = []
    for count in (count for count in COUNTS if count <= len(truth) // 2):
        while (left := count - int(known.sum())) > 0:
            if way == "suggested":
                chosen = model.suggest(min(left, max(10, int(known.sum()) // 5)))
            else:
                chosen, others = others[:left], others[left:]
            model.update_labels(chosen, truth[chosen])
            known[chosen] = True
        accuracy = 100 * float((model.transduction_ == truth)[~known].mean())
        lines.append([count, round(accuracy, 2), *estimate_of(model.report_)])
    return lines


def show(path: Path) -> None:
    """Print what the estimates are worth."""
    with path.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["estimate"]]
    print("| labels | draws | off by | mean difference | in the interval | its width |")
    print("|---|---|---|---|---|---|")
    for way in WAYS:
        for count in (*COUNTS, "all"):
            here = [x for x in lines if x["way"] == way and count in (int(x["labels"]), "all")]
            if not here:
                continue
            columns = ("accuracy", "estimate", "low", "high")
            right, said, low, high = np.array([[float(x[c]) for c in columns] for x in here]).T
            held = 100 * np.mean((low <= right) & (right <= high))
            print(
                f"| {count} {way} | {len(here)} | {np.abs(said - right).mean():.1f} | "
                f"{(said - right).mean():+.1f} | {held:.0f} % | {(high - low).mean():.1f} |"
            )


def main() -> None:
    """Measure what the results do not hold yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--results", type=Path, default=Path("docs/results/estimates.csv"))
    options = parser.parse_args()
    folder = os.environ.get("BIGLP_DATA")
    if folder is None:
        raise SystemExit("BIGLP_DATA is not set; it names the folder with the data sets.")
    warnings.simplefilter("ignore")
    known = set()
    if options.results.exists():
        with options.results.open(newline="") as file:
            known = {tuple(line[:4]) for line in csv.reader(file)}
    for draw in range(options.draws):
        for name in options.sets.split(","):
            rows, truth = load(Path(folder), name, options.rows)
            for way in WAYS:
                case = (name, str(options.rows), way, str(draw))
                if case not in known:
                    lines = [[*case, *line] for line in measure(rows, truth, way, draw)]
                    append(options.results, COLUMNS, lines)
                    print(*case, flush=True)
    show(options.results)


if __name__ == "__main__":
    main()
