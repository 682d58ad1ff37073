"""How many rows are right, which labels are in doubt, and whether labels come from everywhere."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from biglp._labels import Labels, find_doubts
from biglp._learn import HeldOutLabels, estimate_accuracy, unseen_share


def calibrated(n, classes, seed, sharpness=2.0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(classes, 1.0 / sharpness), size=n)
    codes = (shares.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    return shares, codes


def blurred(shares, power):
    powers = shares**power
    return powers / powers.sum(axis=1, keepdims=True)


def estimate(shares, codes, sample, n_labelled=None):
    truth = np.eye(shares.shape[1])[codes]
    return estimate_accuracy(HeldOutLabels(shares, truth), sample, n_labelled or len(codes))


@pytest.mark.parametrize("classes", [2, 5])
def test_probabilities_that_are_right_are_believed(classes):
    sample, truth = calibrated(2000, classes, 0)
    found = estimate(*calibrated(300, classes, 1), sample)
    right = (sample.argmax(axis=1) == truth).mean()
    assert found["accuracy"] == pytest.approx(right, abs=0.03)
    low, high = found["interval"]
    assert low < found["accuracy"] < high
    counts = np.bincount(truth) / len(truth)
    assert found["base_rate"] == pytest.approx(counts.max(), abs=0.03)
    recalls = [(sample[truth == j].argmax(axis=1) == j).mean() for j in range(classes)]
    np.testing.assert_allclose(found["recall"], recalls, atol=0.06)
    assert found["balanced_accuracy"] == pytest.approx(np.mean(recalls), abs=0.03)


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_held_out_labels_correct_false_confidence(power):
    sample, truth = calibrated(2000, 4, 0)
    shares, codes = calibrated(400, 4, 1)
    right = (sample.argmax(axis=1) == truth).mean()
    said = blurred(sample, power)
    found = estimate(blurred(shares, power), codes, said)
    assert abs(found["accuracy"] - right) < 0.7 * abs(said.max(axis=1).mean() - right)


def test_odd_cases_are_never_nan_and_leave_a_doubt():
    for classes in (2, 7):  # rows that are all certain
        shares = np.eye(classes)[np.arange(60) % classes]
        found = estimate(shares, np.arange(60) % classes, shares)
        low, high = found["interval"]
        assert 0.9 < low < high <= 1.0
        json.dumps(found, allow_nan=False)
    shares = np.tile([1.0, 0.0, 0.0], (50, 1))  # a class that no row seems to have
    found = estimate(shares, np.zeros(50, dtype=int), shares)
    json.dumps(found, allow_nan=False)
    assert found["recall"][0] == pytest.approx(1.0, abs=1e-3)
    # Labels of classes that no row is called: nothing to adjust by, they count as they are.
    held_out = HeldOutLabels(np.tile([0.9, 0.1, 0.0], (20, 1)), np.tile([0.0, 0.0, 1.0], (20, 1)))
    found = estimate_accuracy(held_out, np.tile([0.6, 0.4, 0.0], (50, 1)), 20)
    assert np.isfinite([found["accuracy"], found["balanced_accuracy"], *found["interval"]]).all()
    sample, _ = calibrated(100, 3, 0)  # nothing is known
    shares, codes = calibrated(20, 3, 1)
    assert estimate(shares, codes, sample[:0]) is None
    assert estimate(shares[:5], codes[:5], sample) is None
    assert estimate(np.full_like(shares, np.nan), codes, sample) is None


def test_weights_distributions_and_what_the_next_labels_bring():
    sample, _ = calibrated(500, 3, 0)
    shares, codes = calibrated(80, 3, 1)
    truth = np.eye(3)[codes]
    heavy = estimate_accuracy(HeldOutLabels(shares, 2.0 * truth), sample, 80)
    assert heavy == estimate(shares, codes, sample)  # a label of weight two is that label twice
    soft = estimate_accuracy(HeldOutLabels(shares, 0.8 * truth + 0.2 / 3), sample, 80)
    assert soft["accuracy"] < heavy["accuracy"]  # a label that is sure to 80 % is found less surely
    few, many = (estimate(shares, codes, sample, n)["next_labels"] for n in (20, 2000))
    for found in (few, many):
        low, high = found["range"]
        assert 0 <= low < found["gain"] < high < 1 - heavy["accuracy"]
    assert few["gain"] > 10 * many["gain"]


# --------------------------------------------------------------------------------------------------
# Labels in doubt: the stated model of noise, fitted as a naive search does.


def noisy_labels(n=300, c=4, rate=0.1, blur=1.0, seed=0):
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


def test_a_label_given_twice_is_less_doubtful_and_those_of_which_nothing_is_said_are_left_out():
    labels, shares, _ = noisy_labels()
    once = find_doubts(labels, shares)
    worst = int(once.wrong.argmax())
    weights = np.where(np.arange(300) == worst, 3.0, 1.0)
    twice = find_doubts(replace(labels, weights=weights), shares)
    assert twice.wrong[worst] < once.wrong[worst]
    shares[[3, 200]] = np.nan
    found = find_doubts(labels, shares)
    np.testing.assert_array_equal(found.rows, np.delete(np.arange(300), [3, 200]))
    listed = find_doubts(labels, np.full_like(shares, np.nan)).listed(labels)
    assert (len(listed), listed.n_checked, listed.n_labels) == (0, 0, 300)


# --------------------------------------------------------------------------------------------------
# Labels from one region of the rows, and labels from everywhere.


ALARM = 0.4


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4000, 30)) * np.geomspace(4.0, 0.5, 30)


def share(rows, chosen, weights=None):
    weights = np.ones(len(chosen)) if weights is None else weights
    return unseen_share(rows[chosen], weights, rows[::2], seed=0)


def test_random_rows_come_from_everywhere_and_corners_are_seen(cloud):
    for n in (50, 3000):
        for seed in range(10):
            chosen = np.random.default_rng(seed).choice(len(cloud), n, replace=False)
            assert share(cloud, chosen) < ALARM / 1.3
    slanting = cloud[:, :8] @ (1.0 / cloud[:, :8].std(axis=0))
    for values in (cloud[:, 0], -cloud[:, 2], cloud[:, 4], slanting):
        corner = np.flatnonzero(values > np.quantile(values, 0.8))[:60]
        assert share(cloud, corner) > ALARM
        assert share(sparse.csr_array(cloud).tocsr(), corner) > ALARM
    assert share(cloud, np.arange(29)) is None  # few labels say nothing of it
    assert share(np.ones((100, 3)), np.arange(50)) == pytest.approx(0.5)
