"""class_balance="share": answers as frequent as the labels, by thresholds from all rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._algebra.balance import share_offsets
from helpers import blobs, landmarks_of, model, reference_graph, rows_in_a_block, shares_of

SETTINGS = [
    {"factor": "nystrom"},
    {"factor": "nystrom", "alpha": "auto"},
    {"factor": "linear", "alpha": 0.01},
    {"factor": "anchors", "filter": "poisson", "alpha": "auto"},
    {"factor": "glnp", "n_landmarks": 8},
    {"factor": "auto", "alpha": "auto"},
]


def unequal(labelled=45):
    X, y, truth = blobs(n=600, classes=3, labelled=labelled, spread=1.2)
    y[np.flatnonzero(y == 0)[3:]] = -1
    y[np.flatnonzero(y == 1)[9:]] = -1
    return X, y, truth


@pytest.mark.parametrize(
    ("factor", "alpha"),
    # At a small α most rows of an anchor graph have no score, and no threshold tells them apart.
    [
        ("anchors", 0.9),
        *((factor, alpha) for factor in ("nystrom", "linear") for alpha in (0.01, 0.9)),
    ],
)
def test_answers_agree_with_the_dense_reference(factor, alpha):
    X, y, _ = unequal()
    L = landmarks_of(X)
    fitted = model(factor=factor, landmarks=L, alpha=alpha, class_balance="share").fit(X, y)
    W, Y = reference_graph(factor, X, L), ref.one_hot(y)
    d, n_repaired = ref.repaired_degrees(W)
    assert n_repaired == 0
    F = ref.closed_form(ref.normalised_graph(W), Y, alpha)
    expected = ref.probabilities(ref.with_shares(F, Y, d, alpha), shares_of(y[y >= 0], 3))
    # A threshold is anywhere between two rows, so that a few rows may be on either side of it.
    assert (fitted.transduction_ == expected.argmax(axis=1)).mean() > 0.99
    found = shares_of(fitted.transduction_[y < 0], 3)
    np.testing.assert_allclose(found, shares_of(y[y >= 0], 3), atol=0.03)


@pytest.mark.parametrize("changes", SETTINGS, ids=str)
def test_hidden_rows_are_answered_in_the_shares_of_the_labels(changes):
    X, y, _ = unequal()
    X = X - X.min(axis=0) if changes["factor"] in ("glnp", "linear") else X
    fitted = model(class_balance="share", **changes).fit(X, y)
    found = shares_of(fitted.transduction_[y < 0], 3)
    np.testing.assert_allclose(found, shares_of(y[y >= 0], 3), atol=0.05)
    assert np.isfinite(fitted.label_distributions_).all()
    if changes["factor"] != "glnp":  # whose new rows are solved for, and differ a little
        np.testing.assert_allclose(shares_of(fitted.predict(X[y < 0]), 3), found, atol=0.02)


def test_any_cut_and_a_saved_model_give_the_same_labels(tmp_path):
    X, y, _ = unequal()
    expected = model(factor="nystrom", class_balance="share").fit(X, y)
    with rows_in_a_block(7):
        found = model(factor="nystrom", class_balance="share", engine="threads").fit(X, y)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    expected.save(tmp_path / "model.npz")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(X), expected.predict(X))


class TestClassShares:
    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 10_000),
        n=st.integers(50, 400),
        shares=st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5),
    )
    def test_offsets_give_the_shares(self, seed, n, shares):
        shares = np.array(shares) / np.sum(shares)
        scores = np.random.default_rng(seed).normal(size=(n, len(shares)))
        found = (scores - share_offsets(scores, shares)).argmax(axis=1)
        # Two classes are exact up to the row at the threshold.
        slack = 1.5 / n if len(shares) == 2 else 0.02 + 2.0 / n
        np.testing.assert_allclose(shares_of(found, len(shares)), shares, atol=slack)
