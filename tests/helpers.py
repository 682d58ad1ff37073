"""What several test files need: small problems, blocks of a chosen size, raw scores."""

from contextlib import contextmanager
from unittest import mock

import numpy as np
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core.arrays import to_numpy
from biglp._core.blocks import cut_rows
from biglp._sources import PreparedSource, as_source, working_dtype


def blobs(n=200, classes=3, features=5, labelled=24, dtype=np.float64, seed=0, spread=1.0):
    """Overlapping Gaussian groups: rows, labels (-1 where unknown) and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % classes)
    centres = 2.5 * np.eye(classes, features)
    X = (centres[truth] + spread * rng.normal(size=(n, features))).astype(dtype)
    y = np.full(n, -1)
    for j in range(classes):  # as many labels in every class, or one more
        rows = np.flatnonzero(truth == j)[: len(range(j, labelled, classes))]
        y[rows] = j
    return X, y, truth


def model(**changes):
    """An estimator whose every choice is fixed, so that a test changes one thing at a time."""
    settings = {
        "factor": "anchors",
        "n_landmarks": 20,
        "bandwidth": 1.5,
        "alpha": 0.9,
        "class_balance": "mass",
        "scaling": "none",
        "engine": "serial",
        "memory": "1GB",
    }
    return LowRankLabelPropagation(**{**settings, **changes})


def blocks_of(X, rows_each, dtype=None, device="cpu"):
    """Blocks of prepared rows, as the sweeps see them."""
    source = as_source(X)
    dtype = np.dtype(dtype or working_dtype(source.dtype))
    return cut_rows(PreparedSource(source, dtype, device=device), rows_each)


@contextmanager
def rows_in_a_block(rows):
    """Let ``fit`` cut its rows into blocks of ``rows`` rows."""
    with mock.patch("biglp._fit.prepare.cut_rows", lambda source, _: cut_rows(source, rows)):
        yield


def raw_scores(fitted, X, y=None):
    """Balanced scores of rows before they are clipped and made to add up to 1.

    With ``y`` (class codes, -1 where unknown) the rows are the training rows.
    """
    kept = fitted._model
    rows = PreparedSource(as_source(X), kept.dtype, kept.scaling).read(0, X.shape[0])
    features, _ = kept.normalisation.apply(kept.factor.features(rows))
    features = to_numpy(features)
    features = features.toarray() if sparse.issparse(features) else features
    scores = features.astype(np.float64) @ kept.decision.coefficients
    if y is not None:
        known = np.flatnonzero(y >= 0)
        scores[known, y[known]] += kept.decision.own_label[y[known]]
    return scores


def clear_rows(scores, tolerance=1e-5):
    """Rows whose two best scores differ by more than ``tolerance`` of the largest score."""
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2] > tolerance * np.abs(scores).max()


def assert_scores_agree(found, expected, tolerance=1e-5):
    """Scores agree relative to the largest, and the best class wherever that is decided."""
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
    clear = clear_rows(expected, 2 * tolerance)
    assert clear.mean() > 0.9, "the test problem leaves too many rows undecided"
    np.testing.assert_array_equal(found.argmax(1)[clear], expected.argmax(1)[clear])
