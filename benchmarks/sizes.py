"""The default method along a line of sizes: nowhere may accuracy fall, or time jump.

``line``: KDD Cup 99 (BIGLP_DATA) in one random order, repeated where more rows are asked for; the
same 20 labelled rows a class at every size. Accuracy and balanced accuracy on the other rows, and
seconds, all and for a million rows.
``shapes``: the table of scikit-learn issue 6555, and simulated rows × 100, each beside the same fit
with ``factor="anchors"`` on the same landmarks, turn by turn.
``labels``: simulated rows × 20 with ever more of them labelled.
``small``: digits and, with BIGLP_DATA, MNIST beside scikit-learn's LabelSpreading(kernel="knn").

Seconds are those on the clock and, in brackets, those of the processor: where other programs run,
only the latter mean something. Each line is added to ``--history`` with date, commit and processor.

Run with:  BIGLP_DATA=folder python benchmarks/sizes.py line,shapes,labels,small
           [--rows 500000,900000,1100000,2000000] [--shapes 1000000] [--labels 100,1000,10000]
           [--small 1000,20000,70000]
           [--effort balanced]
           [--history bench-out/sizes.csv]
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from biglp import LowRankLabelPropagation

LABELS_A_CLASS, CLASSES = 20, 4
MANY_TURNS = 2000
"""Rows up to which a fit is repeated, and the least counts."""


@dataclass(frozen=True)
class Timed:
    """What a fit took and found."""

    clock: float
    processor: float
    model: Any

    def __str__(self) -> str:
        return f"{self.clock:6.1f} s ({self.processor:6.1f} s)"


def timed(model: Any, rows: np.ndarray, labels: np.ndarray) -> Timed:
    """Fit once."""
    clock, processor = time.perf_counter(), time.process_time()
    model.fit(rows, labels)
    return Timed(time.perf_counter() - clock, time.process_time() - processor, model)


def accuracies(found: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Accuracy and balanced accuracy, in percent."""
    right = np.bincount(truth, found == truth)
    counts = np.bincount(truth)
    seen = counts > 0
    return 100 * right.sum() / counts.sum(), 100 * (right[seen] / counts[seen]).mean()


def kdd(n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels with -1 where unknown, and the truth; the same labelled rows at any size."""
    with np.load(Path(os.environ["BIGLP_DATA"]) / "kddcup99_10pct.npz") as data:
        rows, codes = data["X"].astype(np.float32), np.unique(data["y"], return_inverse=True)[1]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(rows))
    chosen = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    known = np.concatenate([rng.permutation(one)[:LABELS_A_CLASS] for one in chosen])
    order = np.concatenate([known, order[~np.isin(order, known)]])
    at = np.resize(order, n_rows)
    truth = codes[at]
    return rows[at], np.where(np.arange(n_rows) < len(known), truth, -1), truth


def line(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Accuracy and time at each size."""
    for n_rows in options.rows:
        rows, labels, truth = kdd(n_rows)
        fit = timed(LowRankLabelPropagation(effort=options.effort), rows, labels)
        hidden = labels < 0
        plain, balanced = accuracies(fit.model.transduction_[hidden], truth[hidden])
        print(
            f"KDD Cup 99, {n_rows:>10,} rows: {plain:.2f} %, balanced {balanced:.2f} %, {fit}, "
            f"{fit.processor / n_rows * 1e6:.1f} s a million"
        )
        yield {
            "what": f"kdd {n_rows}",
            "seconds": fit.clock,
            "processor": fit.processor,
            "accuracy": plain,
            "balanced": balanced,
        }


def simulated(n_rows: int, n_features: int = 100) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian clusters, 100 labels a class."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, CLASSES, n_rows)
    centres = 0.5 * rng.standard_normal((CLASSES, n_features), dtype=np.float32)
    rows = np.empty((n_rows, n_features), dtype=np.float32)
    for start in range(0, n_rows, 100_000):
        part = rows[start : start + 100_000]
        rng.standard_normal(out=part, dtype=np.float32)
        part += centres[truth[start : start + 100_000]]
    labels = np.full(n_rows, -1)
    for code in range(CLASSES):
        chosen = np.flatnonzero(truth == code)[:100]
        labels[chosen] = code
    return rows, labels, truth


def imbalanced(n_rows: int = 697_526) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The shape of scikit-learn issue 6555, as in examples/imbalanced_700k.py."""
    rng = np.random.default_rng(0)
    truth = (rng.random(n_rows) < 0.02).astype(np.int64)
    centres = 1.3 * rng.normal(size=(2, 12, 15))
    rows = rng.normal(size=(n_rows, 15)) + centres[truth, rng.integers(12, size=n_rows)]
    rows *= 10.0 ** rng.uniform(-2, 3, size=15)
    labels = np.full(n_rows, -1)
    known = rng.choice(n_rows, n_rows * 13_731 // 697_526, replace=False)
    labels[known] = truth[known]
    return rows, labels, truth


def shapes(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The default beside its graph alone."""
    makers: dict[str, Callable[[], Any]] = {"issue 6555": imbalanced}
    for n_rows in options.shapes:
        makers[f"{n_rows:,} x 100"] = lambda n=n_rows: simulated(n)
    for name, make in makers.items():
        rows, labels, truth = make()
        fit = timed(LowRankLabelPropagation(effort=options.effort), rows, labels)
        plain, balanced = accuracies(fit.model.transduction_[labels < 0], truth[labels < 0])
        graph = timed(
            LowRankLabelPropagation(factor="anchors", effort=options.effort), rows, labels
        )
        ratio = fit.processor / graph.processor
        print(
            f"{name}: {fit}, anchors alone {graph}, {fit.clock / graph.clock:.2f} times "
            f"({ratio:.2f}); {plain:.2f} %, balanced {balanced:.2f} %"
        )
        yield {
            "what": name,
            "seconds": fit.clock,
            "processor": fit.processor,
            "ratio": ratio,
            "accuracy": plain,
            "balanced": balanced,
        }


def labels(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The same rows with ever more labels."""
    n_rows = 200_000
    rows, _, truth = simulated(n_rows, 20)
    order = np.random.default_rng(1).permutation(n_rows)
    for n_labelled in options.labels:
        given = np.full(n_rows, -1)
        given[order[:n_labelled]] = truth[order[:n_labelled]]
        fit = timed(LowRankLabelPropagation(effort=options.effort), rows, given)
        plain, balanced = accuracies(fit.model.transduction_[given < 0], truth[given < 0])
        print(f"{n_rows:,} x 20, {n_labelled:,} labels: {fit}; {plain:.2f} %")
        yield {
            "what": f"{n_labelled} labels",
            "seconds": fit.clock,
            "processor": fit.processor,
            "accuracy": plain,
            "balanced": balanced,
        }


def mnist(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of MNIST, and 10 labels a class."""
    with np.load(Path(os.environ["BIGLP_DATA"]) / "mnist.npz") as data:
        rows, truth = data["X"], data["y"].astype(np.int64)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(rows))[:n_rows]
    rows, truth = rows[chosen].astype(np.float32) / 255, truth[chosen]
    labels = np.full(n_rows, -1)
    for code in range(10):
        labels[rng.choice(np.flatnonzero(truth == code), 10, replace=False)] = code
    return rows, labels


def digits() -> tuple[np.ndarray, np.ndarray]:
    """A thousand of scikit-learn's digits, 100 of them labelled."""
    from sklearn.datasets import load_digits

    rows, truth = load_digits(return_X_y=True)
    return rows[:1000].astype(np.float32), np.where(np.arange(1000) < 100, truth[:1000], -1)


def small(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Fits beside LabelSpreading(knn) on the same rows, turn by turn, the least of each."""
    from sklearn.semi_supervised import LabelSpreading

    methods = {
        "biglp": lambda: LowRankLabelPropagation(effort=options.effort),
        "LabelSpreading(knn)": lambda: LabelSpreading(kernel="knn", max_iter=200),
    }
    problems: dict[str, Callable[[], Any]] = {"1,000 digits": digits}
    if "BIGLP_DATA" in os.environ:
        for n_rows in options.small:
            problems[f"{n_rows:,} of MNIST"] = lambda n=n_rows: mnist(n)
    for name, make in problems.items():
        rows, labels = make()
        turns = 9 if len(rows) <= MANY_TURNS else 1
        fits = {method: [] for method in methods}
        for _ in range(turns):
            for method, model in methods.items():
                fits[method].append(timed(model(), rows, labels))
        least = {one: min(found, key=lambda fit: fit.processor) for one, found in fits.items()}
        ours, theirs = least["biglp"], least["LabelSpreading(knn)"]
        ratio = ours.processor / theirs.processor
        print(
            f"{name}: biglp {ours.clock:.3f} s ({ours.processor:.3f} s), LabelSpreading(knn) "
            f"{theirs.clock:.3f} s ({theirs.processor:.3f} s), {ratio:.3f} times as long"
        )
        yield {
            "what": f"{name} beside LabelSpreading(knn)",
            "seconds": ours.clock,
            "processor": ours.processor,
            "ratio": ratio,
        }


COLUMNS = ("date", "commit", "machine", "effort", "what", "seconds", "processor", "ratio")
COLUMNS += ("accuracy", "balanced")
PARTS = {"line": line, "shapes": shapes, "labels": labels, "small": small}


def kept(path: Path, found: dict[str, Any], effort: str) -> None:
    """Add a line to the history."""
    told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    facts = {
        "date": date.today().isoformat(),
        "commit": told.stdout.strip() or "unknown",
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "effort": effort,
    }
    rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        writer.writerow(facts | rounded)


def main() -> None:
    """Measure the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("parts", nargs="?", default="line,shapes,labels,small")
    parser.add_argument("--rows", type=sizes, default=[500_000, 900_000, 1_100_000, 2_000_000])
    parser.add_argument("--shapes", type=sizes, default=[1_000_000])
    parser.add_argument(
        "--labels", type=sizes, default=[100, 300, 1000, 3000, 10_000, 30_000, 100_000]
    )
    parser.add_argument("--small", type=sizes, default=[1000, 20_000, 70_000])
    parser.add_argument("--effort", default="balanced")
    parser.add_argument("--history", type=Path, default=Path("bench-out/sizes.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    warm_rows, warm_labels, _ = simulated(2000)  # libraries are loaded, the walk is compiled
    LowRankLabelPropagation().fit(warm_rows, warm_labels)
    for part in options.parts.split(","):
        for found in PARTS[part](options):
            kept(options.history, found, options.effort)


if __name__ == "__main__":
    main()
