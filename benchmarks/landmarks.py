"""Where the time of an anchor graph goes as the number of landmarks grows.

Times are processor seconds of one serial run, which other programs on a shared machine change
little, and beside them the processor seconds of one read pass over the same rows in the same run.

Run with:  python benchmarks/landmarks.py [--data sim:1Mx50 | file.npz] [-k 1000 2000 5000 10000]
           [--factor anchors] [--labels 5]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from pathlib import Path

import numpy as np

from biglp import LowRankLabelPropagation
from biglp._core.blocks import cut_rows
from biglp._core.progress import Progress, Task
from biglp._engines import SerialEngine
from biglp._rows import as_source


class ProcessorClock(Progress):
    """Processor seconds of each kind of sweep."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a timed sweep."""
        if not n_rows:  # a step, no sweep
            return Task(label, n_rows)
        clock, began = self, time.process_time()

        class Timed(Task):
            def finish(self) -> None:
                name = label.rstrip(" 0123456789")
                spent = time.process_time() - began
                clock.seconds[name] = clock.seconds.get(name, 0.0) + spent

        return Timed(label, n_rows)


def rows_and_truth(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows in memory and their classes."""
    if name.startswith("sim:"):
        source = as_source(name)
        rows = np.concatenate([block.rows() for block in cut_rows(source, 100_000)])
        # Four classes by the signs of the first two features: clusters are not what is timed here.
        return rows, (rows[:, 0] > 0) * 2 + (rows[:, 1] > 0)
    stored = np.load(Path(name))
    return stored["X"].astype(np.float32), stored["y"]


def some_labels(truth: np.ndarray, each: int, seed: int) -> np.ndarray:
    """A few labels of each class, -1 elsewhere."""
    rng, labels = np.random.default_rng(seed), np.full(len(truth), -1)
    for code in np.unique(truth):
        members = np.flatnonzero(truth == code)
        labels[rng.choice(members, min(each, len(members)), replace=False)] = code
    return labels


def main() -> None:
    """Fit with each number of landmarks and print what the steps took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="sim:1Mx50")
    parser.add_argument("-k", type=int, nargs="+", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--factor", default="anchors")
    parser.add_argument("--labels", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, truth = rows_and_truth(options.data)
    for k in options.k:
        for draw in range(options.draws):
            began = time.process_time()
            for block in cut_rows(as_source(rows), 10_000):
                block.rows().max()
            read = time.process_time() - began
            engine = SerialEngine()
            clock = ProcessorClock()
            labels = some_labels(truth, options.labels, draw)
            model = LowRankLabelPropagation(
                factor=options.factor, n_landmarks=k, engine=engine, random_state=0, memory="16GB"
            )
            engine.progress = clock
            began = time.process_time()
            model.fit(rows, labels)
            total = time.process_time() - began
            hidden = labels < 0
            facts = {
                "data": options.data,
                "k": k,
                "draw": draw,
                "read pass": round(read, 3),
                **{name: round(seconds, 2) for name, seconds in clock.seconds.items()},
                "all else": round(total - sum(clock.seconds.values()), 2),
                "total": round(total, 1),
                "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
                "accuracy": round(100 * float((model.transduction_ == truth)[hidden].mean()), 2),
            }
            print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
