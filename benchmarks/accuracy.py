"""Compare biglp's defaults with what one would use instead, on the real data sets in BIGLP_DATA.

Every method sees the same rows and the same labels. Accuracy is that on the unlabelled rows, in
percent, averaged over the draws of labelled rows. "best peer" is an oracle: the peer that happens
to be best in that line.

Run with:  BIGLP_DATA=folder python benchmarks/accuracy.py [--draws 3] [--sets mnist,shuttle].
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import StandardScaler

from biglp import LowRankLabelPropagation
from biglp._sources import Scaling

SETS = {
    "mnist": "mnist.npz",
    "fashion_mnist": "fashion_mnist.npz",
    "adult": "adult_a9a.npz",
    "higgs": "higgs_subset_18k.npz",
    "susy": "susy_subset_30k.npz",
    "protein": "protein_val_2871.npz",
    "kddcup99": "kddcup99_10pct.npz",
    "shuttle": "shuttle.npz",
    "skin": "skin_segmentation.npz",
}
LABELS = (1, 2, 5, 20, 100)
MAX_ROWS = 20_000
Method = Callable[[np.ndarray], np.ndarray]


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """At most MAX_ROWS random rows, without classes that occur once."""
    with np.load(folder / SETS[name]) as data:
        rows, truth = data["X"], data["y"]
    chosen = np.sort(np.random.default_rng(0).permutation(len(truth))[:MAX_ROWS])
    rows, truth = rows[chosen].astype(np.float32), truth[chosen]
    several = np.bincount(truth)[truth] >= 2
    return rows[several], np.unique(truth[several], return_inverse=True)[1]


def draw(truth: np.ndarray, each: int, seed: int) -> np.ndarray:
    """Labels of ``each`` random rows a class (at most half of a class), -1 elsewhere."""
    rng = np.random.default_rng(1000 + seed)
    labels = np.full(len(truth), -1)
    for code in range(truth.max() + 1):
        members = np.flatnonzero(truth == code)
        size = min(each, max(1, len(members) // 2))
        labels[rng.choice(members, size, replace=False)] = code
    return labels


def exact_graph(rows: np.ndarray) -> Method:
    """Label spreading with class mass on the exact graph of 10 nearest neighbours, α = 0.99."""
    n = len(rows)
    _, near = NearestNeighbors(n_neighbors=11).fit(rows).kneighbors(rows)
    ones, starts = np.ones(10 * n), np.arange(0, 10 * n + 1, 10)
    graph = sparse.csr_matrix((ones, near[:, 1:].ravel(), starts), shape=(n, n))
    graph = graph.maximum(graph.T)
    root = sparse.diags(1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    graph = (root @ graph @ root).tocsr()

    def spread(labels: np.ndarray) -> np.ndarray:
        given = (labels[:, None] == np.arange(labels.max() + 1)).astype(float)
        scores = given.copy()
        for _ in range(400):
            scores = 0.99 * (graph @ scores) + 0.01 * given
        return np.asarray((scores / scores.sum(axis=0)).argmax(axis=1))

    return spread


def methods(rows: np.ndarray) -> dict[str, Method]:
    """Every method as a function from labels to predictions."""
    same_scale = np.asarray(Scaling.from_sample(rows, "auto").apply(rows))
    standard = StandardScaler().fit_transform(rows)

    def neighbours(labels: np.ndarray) -> np.ndarray:
        known = labels >= 0
        model = KNeighborsClassifier(min(5, int(known.sum())))
        return np.asarray(model.fit(same_scale[known], labels[known]).predict(same_scale))

    def logistic(labels: np.ndarray) -> np.ndarray:
        known = labels >= 0
        model = LogisticRegression(max_iter=300).fit(standard[known], labels[known])
        return np.asarray(model.predict(standard))

    def ours(labels: np.ndarray) -> np.ndarray:
        return np.asarray(LowRankLabelPropagation().fit(rows, labels).transduction_)

    exact = exact_graph(same_scale)
    return {"biglp": ours, "exact graph": exact, "5-NN": neighbours, "logistic": logistic}


def main() -> None:
    """Print a table of accuracies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    folder = os.environ.get("BIGLP_DATA")
    if folder is None:
        raise SystemExit("BIGLP_DATA is not set; it names the folder with the data sets.")
    warnings.simplefilter("ignore")
    table: list[list[float]] = []
    for name in options.sets.split(","):
        rows, truth = load(Path(folder), name)
        ways = methods(rows)
        if not table:
            print("| data | labels a class |", " | ".join(ways), "| best peer |")
            print("|---" * (len(ways) + 3) + "|")
        for each in LABELS:
            found: dict[str, list[float]] = {way: [] for way in ways}
            for seed in range(options.draws):
                labels = draw(truth, each, seed)
                hidden = labels < 0
                for way, predict in ways.items():
                    found[way].append(100 * float((predict(labels) == truth)[hidden].mean()))
            line = [float(np.mean(values)) for values in found.values()]
            table.append([*line, max(line[1:])])
            print(
                f"| {name} | {each} |", " | ".join(f"{v:.1f}" for v in table[-1]), "|", flush=True
            )
    print("| mean | |", " | ".join(f"{value:.1f}" for value in np.mean(table, axis=0)), "|")


if __name__ == "__main__":
    main()
