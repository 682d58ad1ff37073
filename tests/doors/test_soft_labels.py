"""Label distributions, weights and clamping through a fit, against the dense truth."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._core import LabelError
from helpers import anchor_graph, blobs, model, rows_in_a_block, soft_problem

ALPHA = 0.9


def expected_answers(X, L, Y, prior):
    F = ref.closed_form(anchor_graph(X, L), Y, ALPHA)
    return ref.probabilities(ref.balanced(F, Y, ALPHA, prior), prior)


def test_distributions_and_weights_propagate_as_in_the_dense_reference():
    X, _, Y, weights, L = soft_problem()
    fitted = model(landmarks=L, alpha=ALPHA).fit(X, 7.0 * Y, sample_weight=weights)
    expected = expected_answers(X, L, weights[:, None] * Y, np.full(3, 1 / 3))
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-9)
    assert fitted.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("rows", [7, 64])
@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_integer_weights_are_repeated_labels(rows, engine):
    X, y, _, weights, L = soft_problem()
    repeated = np.zeros((len(X), 3))
    for i in np.flatnonzero(y >= 0):
        for _ in range(int(weights[i])):
            repeated[i, y[i]] += 1.0
    with rows_in_a_block(rows):
        fitted = model(landmarks=L, engine=engine).fit(X, y, sample_weight=weights)
    expected = expected_answers(X, L, repeated, np.full(3, 1 / 3))
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-9)


def test_one_hot_distributions_and_weights_of_one_are_plain_labels():
    X, y, *_ = soft_problem()
    plain = LowRankLabelPropagation(engine="serial").fit(X, y)
    table = np.where((y >= 0)[:, None], np.eye(3)[y], np.nan)
    for given, weights in ((table, None), (sparse.csr_matrix(np.nan_to_num(table)), None)):
        same = LowRankLabelPropagation(engine="serial").fit(X, given, sample_weight=weights)
        np.testing.assert_array_equal(same.label_distributions_, plain.label_distributions_)
    ones = LowRankLabelPropagation(engine="serial").fit(X, y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(ones.label_distributions_, plain.label_distributions_)


@pytest.mark.parametrize("factor", ["auto", "anchors"])
def test_labels_without_weight_are_no_labels(factor):
    """And weights of unlabelled rows are ignored."""
    X, y, _, weights, _ = soft_problem()
    dropped = np.flatnonzero(y >= 0)[::4]
    fewer, zeros = y.copy(), weights.copy()
    fewer[dropped], zeros[dropped] = -1, 0.0
    wild = np.where(fewer < 0, np.nan, weights)
    chosen = LowRankLabelPropagation(factor, engine="serial")
    with_zeros = chosen.fit(X, y, sample_weight=zeros).label_distributions_
    found = chosen.fit(X, fewer, sample_weight=wild).label_distributions_
    np.testing.assert_array_equal(found, with_zeros)


def test_the_committee_listens_to_weights():
    """Labels that are wrong in places do less harm when they are known to be doubtful."""
    X, y, truth = blobs(n=600, labelled=60, spread=1.3)
    known = np.flatnonzero(y >= 0)
    wrong = known[::3]
    y[wrong] = (y[wrong] + 1) % 3
    weights = np.ones(len(X))
    weights[wrong] = 0.02
    unknown = np.setdiff1d(np.arange(len(X)), known)

    def accuracy(**given):
        fitted = LowRankLabelPropagation(engine="serial").fit(X, y, **given)
        assert np.isfinite(fitted.label_distributions_).all()
        return (fitted.transduction_ == truth)[unknown].mean()

    assert accuracy(sample_weight=weights) > accuracy() + 0.03


@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom"])
def test_hard_clamping_keeps_exactly_what_was_given(factor):
    X, y, Y, *_ = soft_problem()
    known = y >= 0
    settings = {"engine": "serial", "n_landmarks": 20}
    hard = LowRankLabelPropagation(factor, clamp="hard", **settings).fit(X, Y)
    soft = LowRankLabelPropagation(factor, **settings).fit(X, Y)
    np.testing.assert_allclose(hard.label_distributions_[known], Y[known], rtol=1e-12)
    assert np.abs(soft.label_distributions_[known] - Y[known]).max() > 1e-3
    np.testing.assert_array_equal(
        hard.label_distributions_[~known], soft.label_distributions_[~known]
    )
    np.testing.assert_array_equal(hard.predict_proba(X), soft.predict_proba(X))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, lambda tags: tags.astype(bool)])
def test_several_tags_a_row_are_no_distribution(form):
    X, y, *_ = soft_problem()
    tags = np.where((y >= 0)[:, None], np.eye(3, dtype=int)[y], 0)
    row = np.flatnonzero(y >= 0)[2]
    tags[row] = 1, 1, 0
    expected = rf"1 of {(y >= 0).sum()} labelled rows have several ones, such as row {row}\."
    plain = LowRankLabelPropagation(engine="serial")
    with pytest.raises(LabelError, match=f"{expected}.*divide each row by its sum.*several tags"):
        plain.fit(X, form(tags))
    shares = tags / np.maximum(tags.sum(axis=1, keepdims=True), 1)
    plain.fit(X, shares)
    with pytest.raises(LabelError, match=expected):
        plain.score(X, form(tags))
    plain.fit(X, 2 * tags)  # votes
