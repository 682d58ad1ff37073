"""What to label first: rows of every group, the same however the work is shared out."""

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core import ParameterError
from biglp._fit import choose_rows as typical
from helpers import blobs, rows_in_a_block

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


def groups(n=400, classes=8):
    """Groups far apart, the last ones small."""
    rng = np.random.default_rng(0)
    shares = np.linspace(4, 1, classes)
    truth = rng.choice(classes, n, p=shares / shares.sum())
    centres = 12.0 * np.eye(classes, 10)
    return centres[truth] + rng.normal(size=(n, 10)), truth


def first(X, n=8, **changes):
    settings = {"n_landmarks": 60, "engine": "serial", "scaling": "none", **changes}
    return LowRankLabelPropagation(**settings).suggest_first(X, n)


@pytest.mark.parametrize("factor", ["auto", "nystrom", "glnp", "linear"])
def test_every_row_once(factor):
    X, _ = groups()
    k = {} if factor != "linear" else {"n_landmarks": "auto"}
    rows = first(X, 30, factor=factor, **k)
    assert len(np.unique(rows)) == 30


def test_rows_of_every_group():
    X, truth = groups()
    for seed in range(3):
        assert len(np.unique(truth[first(X, random_state=seed)])) == 8


def test_rows_are_typical():
    X, truth = groups()
    means = np.array([X[truth == code].mean(axis=0) for code in range(8)])
    far = np.linalg.norm(X - means[truth], axis=1)
    assert far[first(X)].mean() < 0.9 * far.mean()


@pytest.mark.parametrize("factor", ["auto", "nystrom"])
def test_same_rows_on_every_engine(engine, factor):
    X, _ = groups()
    np.testing.assert_array_equal(first(X, factor=factor, engine=engine), first(X, factor=factor))


def test_same_rows_for_any_cut(monkeypatch):
    X, _ = groups()
    monkeypatch.setattr(typical, "TYPICAL_SAMPLE", 150)
    expected = first(X)
    for rows in (13, 400):
        with rows_in_a_block(rows):
            np.testing.assert_array_equal(first(X), expected)


def test_sparse_rows():
    X, truth = groups()
    X = np.where(np.abs(X) > 6.0, X, 0.0)
    rows = first(sparse.csr_matrix(X))
    assert len(np.unique(truth[rows])) == 8


def test_more_than_there_are_clusters(monkeypatch):
    X, *_ = blobs(n=90)
    monkeypatch.setattr(typical, "MOST_CLUSTERS", 5)
    np.testing.assert_array_equal(np.sort(first(X, 1000)), np.arange(90))
    few = np.repeat(np.eye(3), 20, axis=0)  # three distinct rows
    assert len(np.unique(first(few, 10, n_landmarks=3))) == 10


def test_estimator_is_not_changed():
    X, _ = groups()
    found = LowRankLabelPropagation(n_landmarks=60, class_balance=[0.2, 0.3, 0.5])
    found.suggest_first(X, 3)
    assert not hasattr(found, "n_features_in_")


@pytest.mark.parametrize("n", [0, -1, 2.5, "ten"])
def test_number_is_checked(n):
    with pytest.raises(ParameterError, match="n="):
        first(groups()[0], n)
