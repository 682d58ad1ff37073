"""How these models were made, with the code of release 0.1: ``python make.py FOLDER``.

They stay as they are: test_old_models.py tells whether files of that release can still be read.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_iris

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor


def some(truth, n):
    """Labels of a few random rows, -1 for the others."""
    rows = np.random.default_rng(0).choice(len(truth), n, replace=False)
    y = np.full(len(truth), -1)
    y[rows] = truth[rows]
    return y


def main(folder):
    """Fit, save, and keep what each model says of a few rows."""
    digits, digit = load_digits(return_X_y=True)
    digits = digits.astype(np.float32)
    iris, species = load_iris(return_X_y=True)
    words = np.where(some(species, 20) < 0, "", load_iris().target_names[species])
    rng = np.random.default_rng(0)
    board = rng.random((1600, 2)).astype(np.float32)
    squares = (board * 6).astype(int).sum(axis=1) % 2
    wide = (rng.normal(size=(300, 4)) @ rng.normal(size=(4, 220))).astype(np.float32)
    halves = np.where(np.arange(300) < 60, wide[:, 0] > 0, -1)
    share = {"factor": "nystrom", "n_landmarks": 20, "class_balance": "share"}
    cases = {
        "committee": ({"n_landmarks": 40}, digits[:600], some(digit[:600], 60)),
        "committee_trees_and_nearest": (
            {"n_landmarks": 20},
            board,
            np.where(np.arange(1600) < 1200, squares, -1),
        ),
        "committee_projected": ({"n_landmarks": 15}, wide, halves),
        "anchors": ({"factor": "anchors", "n_landmarks": 30}, iris, words),
        "nystrom": ({"factor": "nystrom", "n_landmarks": 30}, digits[:300], some(digit[:300], 40)),
        "nystrom_share": (share, iris, some(species, 20)),
        "glnp": ({"factor": "glnp", "n_landmarks": 10}, digits[:300], some(digit[:300], 40)),
        "glnp_mu": ({"factor": "glnp-mu", "n_landmarks": 5}, iris, some(species, 20)),
        "linear": ({"factor": "linear"}, iris, some(species, 20)),
        "poisson": ({"filter": "poisson", "n_landmarks": 20}, iris, some(species, 12)),
    }
    for name, (settings, X, y) in cases.items():
        fitted = LowRankLabelPropagation(**settings, random_state=0).fit(X, y)
        fitted.save(folder / f"{name}.biglp")
        rows = X[-20:]
        said = {"classes": fitted.predict(rows), "probabilities": fitted.predict_proba(rows)}
        np.savez_compressed(folder / f"{name}.npz", rows=rows, **said)
    X, target = load_diabetes(return_X_y=True)
    two = np.column_stack([target, 100 * X[:, 2]])
    for name, truth in (("regressor", target), ("regressor_two", two)):
        y = truth.astype(float)
        y[60:] = np.nan
        fitted = LowRankLabelPropagationRegressor(n_landmarks=30, random_state=0).fit(X, y)
        fitted.save(folder / f"{name}.biglp")
        np.savez_compressed(folder / f"{name}.npz", rows=X[-20:], values=fitted.predict(X[-20:]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
