"""The methods that biglp is compared with, each a function from rows and labels to labels.

Run as a program, this module measures one method in a process of its own, which can be ended when
it takes too long or too much:

    python -m paper.peer_methods METHOD FOLDER

FOLDER holds X.npy and y.npy; the answer goes to answer.npy and the figures to standard output.
Libraries are loaded, and the method is run once on a few rows, before the clock starts.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM_ROWS = 300
RUNS, SHORT = 3, 10.0
"""Runs of which the best counts, as long as all of them together have taken less than so long."""
NEIGHBOURS = 10
"""Neighbours of the graphs of graphlearning, its usual number."""
MISSING = 6
"""Exit code for a library that is not installed."""
Labeller = Callable[[np.ndarray, np.ndarray], np.ndarray]


def ours(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Biglp with default settings."""
    from biglp import LowRankLabelPropagation

    return np.asarray(LowRankLabelPropagation().fit(X, y).transduction_)


def spreading_knn(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """LabelSpreading of scikit-learn on 7 neighbours, its default, with iterations to converge."""
    from sklearn.semi_supervised import LabelSpreading

    return np.asarray(LabelSpreading(kernel="knn", max_iter=200).fit(X, y).transduction_)


def spreading_rbf(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """LabelSpreading of scikit-learn on the dense kernel, γ = 8 / (mean squared distance).

    Its default γ = 20 does not look at the rows and leaves hundreds of features unconnected.
    """
    from sklearn.semi_supervised import LabelSpreading

    spread = 2.0 * float(X.var(axis=0, dtype=np.float64).sum())  # mean ‖x − x'‖²
    model = LabelSpreading(kernel="rbf", gamma=8.0 / spread, max_iter=200)
    return np.asarray(model.fit(X, y).transduction_)


def nystroem_logistic(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Nystroem features of all rows, then logistic regression on the labelled ones."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression

    spread = 2.0 * float(X.var(axis=0, dtype=np.float64).sum())
    features = Nystroem(
        gamma=2.0 / spread, n_components=min(300, len(X)), random_state=0
    ).fit_transform(X)
    known = y >= 0
    model = LogisticRegression(C=10.0, max_iter=500).fit(features[known], y[known])
    return np.asarray(model.predict(features))


def five_neighbours(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Vote of the five nearest labelled rows."""
    from sklearn.neighbors import KNeighborsClassifier

    known = y >= 0
    return np.asarray(KNeighborsClassifier(5).fit(X[known], y[known]).predict(X))


def laplace(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Laplace learning of graphlearning on its graph of 10 neighbours."""
    return _graph_learning("laplace", X, y)


def poisson(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Poisson learning of graphlearning on its graph of 10 neighbours."""
    return _graph_learning("poisson", X, y)


def _graph_learning(method: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    import graphlearning as gl
    from sklearn.neighbors import NearestNeighbors

    # Its own search wants one more library; scikit-learn's exact one is handed over instead.
    count = min(NEIGHBOURS, len(X))
    distances, near = NearestNeighbors(n_neighbors=count).fit(X).kneighbors(X)
    weights = gl.weightmatrix.knn(None, count, knn_data=(near, distances))
    known = np.flatnonzero(y >= 0)
    return np.asarray(getattr(gl.ssl, method)(weights).fit_predict(known, y[known]))


METHODS: dict[str, Labeller] = {
    "biglp": ours,
    "LabelSpreading knn": spreading_knn,
    "LabelSpreading rbf": spreading_rbf,
    "Nystroem + logistic": nystroem_logistic,
    "5-NN": five_neighbours,
    "graphlearning Laplace": laplace,
    "graphlearning Poisson": poisson,
}
NEEDS = {"graphlearning Laplace": "peers", "graphlearning Poisson": "peers"}
"""Extra that a method needs."""


def measure(method: str, folder: Path) -> dict[str, Any]:
    """Time one method on the rows in a folder."""
    from biglp._core.memory import private_memory

    label = METHODS[method]
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    warnings.simplefilter("ignore")
    few = _few(y)
    label(X[few], y[few])
    before = private_memory()
    runs: list[tuple[float, float]] = []
    while len(runs) < RUNS and sum(seconds for seconds, _ in runs) < SHORT:
        cpu, began = time.process_time(), time.perf_counter()
        answer = label(X, y)
        runs.append((time.perf_counter() - began, time.process_time() - cpu))
    np.save(folder / "answer.npy", np.asarray(answer))
    seconds, cpu = min(runs)
    return {"seconds": seconds, "cpu": cpu, "before": before}


def _few(y: np.ndarray) -> np.ndarray:
    """All classes and some unlabelled rows, to load what is loaded late."""
    known = np.flatnonzero(y >= 0)[:WARM_ROWS]
    return np.concatenate([known, np.flatnonzero(y < 0)[:WARM_ROWS]])


if __name__ == "__main__":
    try:
        found = measure(sys.argv[1], Path(sys.argv[2]))
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(MISSING)
    sys.stdout.write(json.dumps(found) + "\n")
