"""Labels in doubt: the stated model of noise, fitted as a naive search does."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from biglp._labels import Labels, find_doubts


def noisy_labels(n=300, c=4, rate=0.1, blur=1.0, seed=0):
    """Probabilities that are right, labels drawn from them, and which of these are wrong."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, c)) + 5.0 * np.eye(c)[rng.integers(c, size=n)]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = (shares.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    wrong = rng.random(n) < rate
    codes = np.where(wrong, (truth + rng.integers(1, c, n)) % c, truth)
    blurred = shares**blur
    blurred /= blurred.sum(axis=1, keepdims=True)
    return Labels(np.arange(c), np.arange(n), codes, n), blurred, wrong


def naive(labels, shares):
    """ε and the probabilities of being wrong, by a search that is given no slopes."""
    n, c = shares.shape
    weights = np.ones(n) if labels.weights is None else labels.weights
    given = np.eye(c)[labels.codes] if labels.distribution is None else labels.distribution

    def parts(unknown):
        powers = shares ** np.exp(unknown[1])
        q = (given * powers).sum(axis=1) / powers.sum(axis=1)
        rates = np.minimum(unknown[0] ** weights, (c - 1) / c)
        return (1 - rates) * q, rates * (1 - q) / (c - 1)

    def loss(unknown):
        right, wrong = parts(unknown)
        before = np.log(unknown[0]) + 19 * np.log(1 - unknown[0])
        return 2 * unknown[1] ** 2 - before - np.log(right + wrong).sum()

    bounds = [(1e-4, 0.4), (-1.5, 1.5)]
    found = minimize(loss, [0.05, 0.0], method="Nelder-Mead", bounds=bounds, tol=1e-10)
    right, wrong = parts(found.x)
    return found.x[0], wrong / (right + wrong)


def test_the_stated_loss_is_minimised():
    labels, shares, _ = noisy_labels(blur=0.6)
    rng = np.random.default_rng(1)
    softened = 0.8 * np.eye(4)[labels.codes] + 0.05
    for case in (
        labels,
        replace(labels, weights=rng.uniform(0.2, 3.0, 300)),
        replace(labels, distribution=softened),
    ):
        found = find_doubts(case, shares)
        rate, wrong = naive(case, shares)
        assert found.error_rate == pytest.approx(rate, abs=1e-3)
        np.testing.assert_allclose(found.wrong, wrong, atol=0.01)


@pytest.mark.parametrize("blur", [1.0, 0.5])
def test_the_share_of_wrong_labels_is_found(blur):
    noisy, shares, wrong = noisy_labels(n=1000, rate=0.15, blur=blur)
    found = find_doubts(noisy, shares)
    assert found.error_rate == pytest.approx(0.15, abs=0.03)
    assert found.wrong.sum() == pytest.approx(wrong.sum(), rel=0.2)
    assert wrong[found.wrong > 0.5].mean() > 0.8
    clean, shares, _ = noisy_labels(n=1000, rate=0.0, blur=blur)
    assert find_doubts(clean, shares).error_rate < 0.02


def test_the_most_doubtful_come_first_under_their_names():
    labels, shares, _ = noisy_labels()
    named = replace(labels, classes=np.array(["a", "b", "c", "d"]))
    found = find_doubts(named, shares)
    every = found.listed(named, least=0.0)
    assert len(every) == every.n_checked == every.n_labels == 300
    assert (np.diff(every.wrong) <= 0).all()
    listed = found.listed(named)
    np.testing.assert_array_equal(listed.rows, every.rows[: len(listed)])
    np.testing.assert_array_equal(listed.labels, named.classes[labels.codes[listed.rows]])
    np.testing.assert_array_equal(
        listed.suggested_labels, named.classes[shares[listed.rows].argmax(axis=1)]
    )
    assert (listed.suggested_probability > listed.probability).all()
    assert listed.n_probably_wrong == len(found.listed(named, least=0.5)) > 10
    assert set(map(len, listed.to_dict().values())) == {len(listed)}


def test_a_label_given_twice_is_less_doubtful():
    labels, shares, _ = noisy_labels()
    once = find_doubts(labels, shares)
    worst = int(once.wrong.argmax())
    weights = np.ones(300)
    weights[worst] = 3.0
    twice = find_doubts(replace(labels, weights=weights), shares)
    assert twice.wrong[worst] < once.wrong[worst]


def test_labels_of_which_nothing_is_said_are_left_out():
    labels, shares, _ = noisy_labels()
    shares[[3, 200]] = np.nan
    found = find_doubts(labels, shares)
    np.testing.assert_array_equal(found.rows, np.delete(np.arange(300), [3, 200]))
    listed = find_doubts(labels, np.full_like(shares, np.nan)).listed(labels)
    assert (len(listed), listed.n_checked, listed.n_labels) == (0, 0, 300)
