"""Time the sweeps in units of one read pass over the same rows.

The machine is shared and noisy, so every time is divided by the time of one threaded pass that
only takes the maximum of each block, measured just before and after in the same run: once on the
clock, and once in processor seconds, which other programs change less. Large Nyström fits are done
by the compiled loops, and by NumPy for comparison.

Run with:  python benchmarks/speed.py [--rows 4000000] [--features 100] [--repeat 3] [--keep]

``--keep`` appends the ratios to ``docs/results/history.csv``.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from biglp import LowRankLabelPropagation
from biglp._compiled import native
from biglp._core.blocks import Block, cut_rows
from biglp._engines import ThreadEngine
from biglp._rows import as_source
from history import keep

# Factor, landmarks, k, whether the compiled loops may run, and the most read passes it should take.
CASES = (
    ("nystrom", "random", 20, True, 7),
    ("nystrom", "random", 20, False, None),
    ("nystrom", "random", 100, True, 15),
    ("nystrom", "random", 100, False, None),
    ("anchors", "kmeans", 20, True, None),
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


def read_pass(engine: ThreadEngine, rows: np.ndarray) -> np.ndarray:
    """Seconds of one threaded read pass, on the clock and of the processors."""
    blocks = cut_rows(as_source(rows), READ_ROWS)
    return timed(lambda: engine.map_blocks(block_maximum, blocks))


def timed(action: Callable[[], Any]) -> np.ndarray:
    """Seconds on the clock, and of the processors."""
    began = np.array([time.perf_counter(), time.process_time()])
    action()
    return np.array([time.perf_counter(), time.process_time()]) - began


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
    for factor, landmarks, k, compiled, goal in CASES:
        os.environ["BIGLP_COMPILED"] = "" if compiled else "off"
        native.library.cache_clear()
        model = LowRankLabelPropagation(
            factor=factor,
            landmarks=landmarks,
            n_landmarks=k,
            alpha=0.9,
            class_balance="mass",
            scaling="none",
            memory="8GB",
        )
        fits, reads = [], []
        for _ in range(options.repeat):
            reads.append(read_pass(engine, rows))
            fits.append(timed(lambda model=model: model.fit(rows, labels)))
            reads.append(read_pass(engine, rows))
        assert len(model.transduction_) == options.rows
        seconds, read = np.min(fits, axis=0), np.min(reads, axis=0)
        # On the clock, each fit beside the passes around it, because others come and go.
        around = np.add(reads[::2], reads[1::2])[:, 0] / 2
        clock, processor = (np.array(fits)[:, 0] / around).min(), seconds[1] / read[1]
        way = model.report_.get("sweeps", "numpy")
        name = f"{factor} {landmarks} k={k}"
        suffix = ", compiled" if way == "compiled" else ""
        ratios[f"{name}, in memory{suffix}"] = clock
        ratios[f"{name}, in memory{suffix}, processor"] = processor
        wanted = f" (goal {goal})" if goal else ""
        print(
            f"{name + ', ' + way:32} {seconds[0]:6.2f} s, {clock:5.1f} read passes on the clock, "
            f"{processor:5.1f} of {read[1]:.3f} processor seconds{wanted}",
            flush=True,
        )
    if options.keep:
        keep(ratios)


if __name__ == "__main__":
    main()
