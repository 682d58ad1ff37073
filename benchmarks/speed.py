"""Time the sweeps in units of one read pass over the same rows.

The machine is shared and noisy, so every time is divided by the time of one threaded pass that
only takes the maximum of each block, measured just before and after in the same run.

Run with:  python benchmarks/speed.py [--rows 4000000] [--features 100] [--repeat 3] [--keep]

``--keep`` appends the ratios to ``docs/results/history.csv``.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from biglp import LowRankLabelPropagation
from biglp._core.blocks import Block, cut_rows
from biglp._engines import ThreadEngine
from biglp._sources import as_source
from history import keep

# Factor, landmarks, k, and the most read passes that it should take.
CASES = (
    ("nystrom", "random", 20, 10),
    ("nystrom", "random", 100, 22),
    ("anchors", "kmeans", 20, None),
)
READ_ROWS = 10_000


def simulated(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows in two shifted classes, 100 labels each."""
    rng = np.random.default_rng(0)
    rows = np.empty((n_rows, n_features), dtype=np.float32)
    truth = rng.integers(0, 2, n_rows).astype(np.int8)
    for start in range(0, n_rows, 100_000):
        part = rows[start : start + 100_000]
        rng.standard_normal(out=part, dtype=np.float32)
        part += 0.3 * truth[start : start + 100_000, None]
    labels = np.full(n_rows, -1, dtype=np.int8)
    for code in (0, 1):
        chosen = rng.choice(np.flatnonzero(truth == code), 100, replace=False)
        labels[chosen] = code
    return rows, labels


def block_maximum(block: Block) -> float:
    """Read a block and nothing else."""
    return float(block.rows().max())


def read_pass(engine: ThreadEngine, rows: np.ndarray) -> float:
    """Seconds of one threaded read pass."""
    blocks = cut_rows(as_source(rows), READ_ROWS)
    began = time.perf_counter()
    engine.map_blocks(block_maximum, blocks)
    return time.perf_counter() - began


def main() -> None:
    """Time each case and print its ratio to a read pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="append to the history")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, labels = simulated(options.rows, options.features)
    engine = ThreadEngine()
    read_pass(engine, rows)
    print(f"{options.rows:,} × {options.features} float32 in memory, {engine.n_threads} threads")
    ratios = {}
    for factor, landmarks, k, goal in CASES:
        results = []
        for _ in range(options.repeat):
            before = read_pass(engine, rows)
            began = time.perf_counter()
            model = LowRankLabelPropagation(
                factor=factor,
                landmarks=landmarks,
                n_landmarks=k,
                alpha=0.9,
                class_balance="mass",
                scaling="none",
                memory="8GB",
            ).fit(rows, labels)
            seconds = time.perf_counter() - began
            after = read_pass(engine, rows)
            results.append((seconds / ((before + after) / 2), seconds, before))
            assert len(model.transduction_) == options.rows
        ratio, seconds, before = min(results)
        ratios[f"{factor} {landmarks} k={k}, in memory"] = ratio
        wanted = f" (goal {goal})" if goal else ""
        name = f"{factor}, {landmarks}, k={k}"
        print(f"{name:28} {seconds:6.2f} s, {ratio:5.1f} read passes of {before:.3f} s{wanted}")
    if options.keep:
        keep(ratios)


if __name__ == "__main__":
    main()
