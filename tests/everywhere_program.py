"""Every algorithm once, on one engine: ``everywhere_program.py OUT.npz`` under mpiexec.

test_everywhere.py runs it under several numbers of ranks, and calls :func:`fit_all` itself with
engines that need no launcher.
"""

import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from biglp import LowRankLabelPropagationRegressor
from biglp._core import BigLPWarning
from biglp._engines import make_engine
from helpers import blobs, model, rows_in_a_block

ROWS_A_BLOCK = 30
MEMORY = "4GB"
"""Of the machine: enough for five processes with all their libraries."""
MANY = 750
"""Landmarks whose sums are added sparsely, and here solved sparsely too."""
VOTERS = 600
"""Labels that are enough for the nearest of them to vote."""
NEAREST = "biglp._learn.committee.nearest"
MANY_LANDMARKS = {"landmarks": "random", "n_landmarks": MANY, "alpha": "auto"}
SHORT = {"n_landmarks": 8, "factor_params": {"max_iter": 5}}
CASES = {
    "auto": {"factor": "auto", "n_landmarks": 30, "alpha": "auto", "class_balance": "auto"},
    "auto-weighted": {"factor": "auto", "n_landmarks": 30, "clamp": "hard"},
    "auto-voters": {"factor": "auto", "n_landmarks": 30},
    "anchors": {"factor": "anchors"},
    "anchors-weighted": {"factor": "anchors", "alpha": "auto"},
    "anchors-iterative": {"factor": "anchors", "solver": "iterative"},
    "anchors-sparse": {"factor": "anchors"},
    "anchors-file": {"factor": "anchors", "alpha": "auto", "bandwidth": "auto"},
    "anchors-poisson": {"factor": "anchors", "filter": "poisson", "alpha": "auto"},
    "anchors-many": {"factor": "anchors", "class_balance": "auto", **MANY_LANDMARKS},
    "nystrom-random": {"factor": "nystrom", "landmarks": "random"},
    "nystrom-kmeans": {"factor": "nystrom", "landmarks": "kmeans", "scaling": "standard"},
    "nystrom-kmeans-full": {"factor": "nystrom", "landmarks": "kmeans-full"},
    "nystrom-iterative": {"factor": "nystrom", "solver": "iterative"},
    "nystrom-share": {"factor": "nystrom", "class_balance": "share"},
    "glnp-share": {"factor": "glnp", "class_balance": "share", **SHORT},
    "glnp": {"factor": "glnp", "n_landmarks": 8, "factor_params": {"max_iter": 8}},
    "glnp-mu": {"factor": "glnp-mu", "n_landmarks": 8, "factor_params": {"max_iter": 8}},
    "glnp-iterative": {"factor": "glnp", "solver": "iterative", **SHORT},
    "linear": {"factor": "linear", "class_balance": "auto"},
    "graph": {"factor": "precomputed", "alpha": "auto", "class_balance": "auto"},
}


def problem(case, folder):
    labelled = VOTERS if case == "auto-voters" else 36
    X, y, _ = blobs(n=900, classes=3, features=6, labelled=labelled, spread=1.2, dtype=np.float32)
    if case.startswith(("glnp", "linear")):
        X = np.abs(X)
    if case == "anchors-sparse":
        return sparse.csr_matrix(np.where(X > 0.5, X, 0)), y
    if case == "graph":
        return kneighbors_graph(X, 7), y
    return (folder / "rows.npy" if case == "anchors-file" else X), y


def write_rows(folder):
    np.save(folder / "rows.npy", problem("anchors", folder)[0])


def fit_all(engine, folder):
    found = {}
    for case, settings in CASES.items():
        X, y = problem(case, folder)
        with (
            rows_in_a_block(ROWS_A_BLOCK),
            mock.patch.multiple("biglp._algebra.systems", DENSE_RANK=MANY - 1, DENSE_WORK=0),
            mock.patch(f"{NEAREST}.MIN_LABELS", VOTERS),
            mock.patch(f"{NEAREST}.NearestMember.worth", 0.0),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", BigLPWarning)
            weights = np.arange(len(y)) % 4 if case.endswith("weighted") else None
            chosen = {**settings, "engine": engine, "memory": MEMORY, "random_state": 3}
            fitted = model(**chosen).fit(X, y, weights)
        heard = {one.member for one in getattr(fitted._model.answer, "models", ())}
        assert ("nearest labels" in heard) == (case == "auto-voters")
        found[f"{case}/labels"] = fitted.transduction_
        found[f"{case}/scores"] = fitted.label_distributions_
        found[f"{case}/predicted"] = fitted.predict(X)
        for name, array in fitted._model.views[0].features.factor.state().items():
            found[f"{case}/factor/{name}"] = array
    X, y = problem("anchors", folder)
    y = np.where(y < 0, np.nan, X[:, :1].ravel())
    with rows_in_a_block(ROWS_A_BLOCK):
        fitted = LowRankLabelPropagationRegressor(n_landmarks=30, engine=engine).fit(X, y)
    found["regression/values"] = fitted.transduction_
    return found


def bytes_sent(engine, n_rows):
    X, y, _ = blobs(n=n_rows, features=6, labelled=36, dtype=np.float32)
    found = {}
    for case in ("nystrom-kmeans-full", "glnp", "glnp-mu"):
        engine.bytes_sent.clear()
        with rows_in_a_block(ROWS_A_BLOCK), warnings.catch_warnings():
            warnings.simplefilter("ignore", BigLPWarning)
            chosen = {**CASES[case], "n_landmarks": 7, "engine": engine, "memory": MEMORY}
            model(**chosen).fit(np.abs(X), y)
        found |= {f"{case}/{sweep}": sent for sweep, sent in engine.bytes_sent.items()}
    return found


if __name__ == "__main__":
    out = Path(sys.argv[1])
    with make_engine("mpi") as everyone:
        results = fit_all(everyone, out.parent)
        for n_rows in (900, 3600):
            for sweep, sent in bytes_sent(everyone, n_rows).items():
                results[f"bytes/{n_rows}/{sweep}"] = np.array(sent)
        everyone.once(lambda: np.savez(out, **results))
