"""What several test files need: small problems, blocks of a chosen size, raw scores."""

import warnings
from contextlib import contextmanager
from unittest import mock

import numpy as np
from scipy import sparse

import reference as ref
from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BigLPWarning, Settings, cut_rows, to_numpy
from biglp._engines import SerialEngine
from biglp._graph import TrainingRows
from biglp._rows import PreparedRows, Sample, as_source, working_dtype

NEAREST = 5
"""Landmarks that a row is tied to, where nothing is set."""


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


def threshold_table(n_rows=400, seed=0):
    """Rows whose class (one of four) follows from thresholds on two of six features."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, 6)).astype(np.float32)
    codes = (rows[:, 1] > 0.3) * 1 + (rows[:, 4] < -0.5) * 2
    return rows, codes


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


def measured_problem(n=150, labelled=30, targets=None, seed=0, dtype=np.float64):
    """Rows with measured targets: rows, labels (NaN where unknown), truth, weights, landmarks."""
    X, _, _ = blobs(n=n, seed=seed, dtype=dtype)
    rng = np.random.default_rng(seed)
    truth = 100.0 + 5.0 * np.sin(X[:, :1]) + X[:, 1:2] * (1.0 + np.arange(targets or 1))
    y = np.full_like(truth, np.nan)
    known = np.sort(rng.choice(n, labelled, replace=False))
    y[known] = truth[known] + 0.1 * rng.normal(size=(labelled, truth.shape[1]))
    weights = rng.integers(1, 4, n).astype(float)
    y, truth = (y, truth) if targets else (y[:, 0], truth[:, 0])
    return X, y, truth, weights, X[rng.choice(n, 15, replace=False)]


def regressor(**changes):
    """A regressor whose every choice is fixed but the landmarks."""
    settings = {"factor": "anchors", "alpha": 0.9, "bandwidth": 1.5, "scaling": "none"}
    return LowRankLabelPropagationRegressor(**{**settings, "engine": "serial", **changes})


def blocks_of(X, rows_each, dtype=None, device="cpu"):
    """Blocks of prepared rows, as the sweeps see them."""
    source = as_source(X)
    dtype = np.dtype(dtype or working_dtype(source.dtype))
    return cut_rows(PreparedRows(source, dtype, device=device), rows_each)


def training_rows(blocks, engine=None, seed=0):
    """Blocks of prepared rows with an engine that visits them: what factors are fitted to."""
    source = blocks[0].source
    return TrainingRows(engine or SerialEngine(), source, blocks, Sample.of_prepared(source, seed))


def settings_of(estimator):
    """The checked parameters of an estimator."""
    return Settings.of(estimator.get_params(deep=False))


@contextmanager
def rows_in_a_block(rows):
    """Let ``fit`` cut its rows into blocks of ``rows`` rows."""
    with mock.patch("biglp._fit.pipeline.cut_rows", lambda source, _: cut_rows(source, rows)):
        yield


def quick_model(factor="auto", **more):
    """:func:`model` with any factor, GLNP with few steps."""
    if factor == "glnp":
        more |= {"n_landmarks": 6, "factor_params": {"max_iter": 3}}
    return model(factor=factor, **more)


def fitted_blobs(factor="auto", n=400, engine="serial", rows=70):
    """A fitted estimator, its rows, labels and truth."""
    X, y, truth = blobs(n=n, labelled=12)
    X = np.abs(X)
    with rows_in_a_block(rows):
        return quick_model(factor, engine=engine).fit(X, y), X, y, truth


def soft_problem(seed=0, **changes):
    """Rows, label distributions (zeros where unknown), weights and landmarks."""
    X, y, _ = blobs(**changes)
    rng = np.random.default_rng(seed)
    Y = np.zeros((len(X), 3))
    known = y >= 0
    Y[known] = 0.2 * rng.dirichlet(np.ones(3), known.sum()) + 0.8 * np.eye(3)[y[known]]
    weights = rng.integers(1, 4, len(X)).astype(float)
    return X, y, Y, weights, X[rng.choice(len(X), 20, replace=False)]


def anchor_graph(X, L):
    """S of the dense reference."""
    return ref.normalised_graph(ref.anchor_graph(X, L, 1.5, NEAREST))


def automatic(factor):
    """An estimator that must find its own bandwidth and scaling."""
    return LowRankLabelPropagation(factor=factor, engine="serial", alpha=0.9, memory="1GB")


def fit_quietly(estimator, X, y):
    """Fit where warnings of our own are part of a correct answer, and check the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)
        estimator.fit(X, y)
    for probabilities in (estimator.label_distributions_, estimator.predict_proba(X)):
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    return estimator


def raw_scores(fitted, X, y=None):
    """Balanced scores of rows before they are clipped and made to add up to 1.

    With ``y`` (class codes, -1 where unknown) the rows are the training rows.
    """
    kept = fitted._model
    (view,) = kept.views
    rows = PreparedRows(as_source(X), kept.dtype, view.chain).read(0, X.shape[0])
    features = to_numpy(view.features.of_rows(rows))
    features = features.toarray() if sparse.issparse(features) else features
    scores = features.astype(np.float64) @ kept.answer.coefficients
    if y is not None:
        known = np.flatnonzero(y >= 0)
        scores[known, y[known]] += kept.answer.own_label[y[known]]
    return scores


def landmarks_of(X, count=20):
    """Some rows to give as landmarks."""
    return X[np.random.default_rng(1).choice(len(X), count, replace=False)]


def reference_graph(factor, X, L, sigma=1.5, nearest=NEAREST):
    """W of the dense reference for a factor, by its name."""
    if factor == "anchors":
        return ref.anchor_graph(X, L, sigma, nearest)
    if factor == "nystrom":
        return ref.nystrom_graph(X, L, sigma, len(L) * np.finfo(X.dtype).eps)
    return ref.linear_graph(X)


def shares_of(labels, n_classes):
    """Share of each class among labels."""
    return np.bincount(labels, minlength=n_classes) / len(labels)


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


class Counting(SerialEngine):
    """Notes every sweep."""

    def __init__(self):
        super().__init__()
        self.sweeps = []

    def sum_blocks(self, func, blocks, label="sum"):
        self.sweeps.append(label)
        return super().sum_blocks(func, blocks, label)

    def map_blocks(self, func, blocks, label="map"):
        self.sweeps.append(label)
        return super().map_blocks(func, blocks, label)
