"""Seeded k-means against the formula, and where it is asked."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from biglp import LowRankLabelPropagation
from biglp._learn.committee.means import ITERATIONS, LABEL_WEIGHT, SHARPNESS, nearness, seeded_means


def texts(n=600, seed=0):
    """Rows of counts: three subjects with words of their own, and words that all use."""
    rng = np.random.default_rng(seed)
    subject = rng.integers(3, size=n)
    chances = np.full((3, 900), 0.2)
    for number in range(3):
        chances[number, 200 * number : 200 * number + 200] = 1.0
    chances /= chances.sum(axis=1, keepdims=True)
    lengths = rng.integers(15, 60, size=n)
    words = [
        rng.multinomial(length, chances[s]) for length, s in zip(lengths, subject, strict=True)
    ]
    return sparse.csr_matrix(np.array(words, dtype=np.float32)), subject


def test_means_follow_the_formula():
    rng = np.random.default_rng(1)
    sample, rows = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    targets = np.array([[1.0, 0], [0, 1], [0.5, 0.5], [2, 0], [0, 1]])
    means = np.array([(targets[:, j, None] * rows).sum(0) / targets[:, j].sum() for j in (0, 1)])
    for _ in range(ITERATIONS):
        logits = np.array([[x @ m - 0.5 * m @ m for m in means] for x in sample])
        centred = logits - logits.mean(axis=1, keepdims=True)
        shares = softmax(SHARPNESS * logits / np.median(np.abs(centred).max(axis=1)), axis=1)
        means = np.array(
            [
                (shares[:, j] @ sample + LABEL_WEIGHT * targets[:, j] @ rows)
                / (shares[:, j].sum() + LABEL_WEIGHT * targets[:, j].sum())
                for j in (0, 1)
            ]
        )
    np.testing.assert_allclose(seeded_means(sample, rows, targets), means, atol=1e-10)


def test_a_class_without_labels_has_no_share():
    rng = np.random.default_rng(2)
    sample = rng.normal(size=(30, 2))
    means = seeded_means(sample, sample[:2], np.array([[1.0, 0, 0], [0, 1, 0]]))
    assert np.isfinite(means).all()
    np.testing.assert_array_equal(means[2], 0.0)
    assert np.isfinite(nearness(sample, means)).all()


def test_unlabelled_texts_move_the_means():
    X, truth = texts()
    y = np.full(len(truth), -1)
    y[[int(np.flatnonzero(truth == code)[0]) for code in range(3)]] = [0, 1, 2]
    fitted = LowRankLabelPropagation(random_state=0).fit(X, y)
    names = [member["member"] for member in fitted.report_["members"]]
    assert "seeded k-means" in names
    assert (fitted.transduction_ == truth)[y < 0].mean() > 0.95
    assert (fitted.predict(X) == truth).mean() > 0.95


@pytest.mark.parametrize("kind", ["table", "pixels"])
def test_it_is_not_asked_of_other_rows(kind):
    rng = np.random.default_rng(0)
    table, pixels = rng.normal(size=(200, 5)), rng.random((200, 3)) @ rng.random((3, 250))
    X = table if kind == "table" else pixels
    y = np.where(np.arange(200) < 10, np.arange(200) % 2, -1)
    fitted = LowRankLabelPropagation(random_state=0).fit(X, y)
    assert "seeded k-means" not in [one["member"] for one in fitted.report_["members"]]
