"""How many rows are right, from what is said of them and of held-out labels."""

import json

import numpy as np
import pytest

from biglp._learn.accuracy import HeldOutLabels, estimate_accuracy, next_labels


def calibrated(n, classes, seed, sharpness=2.0):
    """Class probabilities that are right as often as they say, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(classes, 1.0 / sharpness), size=n)
    codes = (shares.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    return shares, codes


def blurred(shares, power):
    """The same opinions, said with more or less confidence."""
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


def test_hard_labels_do_not_pull_the_estimate_down():
    sample, truth = calibrated(4000, 3, 0)
    shares, codes = calibrated(4000, 3, 1)
    hard = np.argsort(shares.max(axis=1))[:200]  # those that the model is least sure of
    right = (sample.argmax(axis=1) == truth).mean()
    of_labels = (shares[hard].argmax(axis=1) == codes[hard]).mean()
    found = estimate(shares[hard], codes[hard], sample)
    low, high = found["interval"]
    assert of_labels < low < right < high
    easy = estimate(shares[:200], codes[:200], sample)["interval"]
    assert high - low > easy[1] - easy[0]  # less is known from labels unlike the rest


def test_labels_drawn_by_class_count_as_their_class_does():
    rng = np.random.default_rng(0)
    codes = (rng.random(4000) < 0.05).astype(int)  # the second class is rare, and never found
    sample = np.tile([0.9, 0.1], (4000, 1))
    few = np.concatenate([np.flatnonzero(codes == j)[:50] for j in (0, 1)])
    found = estimate(sample[few], codes[few], sample)
    assert found["accuracy"] > 0.85  # half of the held-out labels are found
    assert found["largest_class"] == 0


def test_more_labels_say_more():
    sample, _ = calibrated(2000, 3, 0)
    widths = []
    for n in (10, 40, 160, 640):
        low, high = estimate(*calibrated(n, 3, 1), sample)["interval"]
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.25


@pytest.mark.parametrize("classes", [2, 7])
def test_rows_that_are_all_certain_leave_a_doubt(classes):
    shares = np.eye(classes)[np.arange(60) % classes]
    found = estimate(shares, np.arange(60) % classes, shares)
    low, high = found["interval"]
    assert 0.9 < low < 1.0
    assert high <= 1.0
    assert low < high
    json.dumps(found, allow_nan=False)


def test_a_class_that_no_row_seems_to_have():
    shares = np.tile([1.0, 0.0, 0.0], (50, 1))
    found = estimate(shares, np.zeros(50, dtype=int), shares)
    json.dumps(found, allow_nan=False)
    assert found["recall"][0] == pytest.approx(1.0, abs=1e-3)


def test_nothing_is_said_where_nothing_is_known():
    sample, _ = calibrated(100, 3, 0)
    shares, codes = calibrated(20, 3, 1)
    assert estimate(shares, codes, sample[:0]) is None
    assert estimate(shares[:5], codes[:5], sample) is None
    assert estimate(np.full_like(shares, np.nan), codes, sample) is None


def test_a_label_of_weight_two_is_that_label_twice():
    sample, _ = calibrated(500, 3, 0)
    shares, codes = calibrated(80, 3, 1)
    truth = np.eye(3)[codes]
    heavy = estimate_accuracy(HeldOutLabels(shares, 2.0 * truth), sample, 80)
    assert heavy == estimate(shares, codes, sample)
    soft = estimate_accuracy(HeldOutLabels(shares, 0.8 * truth + 0.2 / 3), sample, 80)
    assert soft["accuracy"] < heavy["accuracy"]  # a label that is sure to 80 % is found less surely


def test_next_labels():
    few, many = next_labels(0.8, 20), next_labels(0.8, 2000)
    for found in (few, many):
        low, high = found["range"]
        assert 0 <= low < found["gain"] < high < 0.2
    assert few["gain"] > 10 * many["gain"]


def test_labels_of_classes_that_no_row_is_called():
    """Nothing to adjust by: the labels count as they are, and no figure is NaN."""
    held_out = HeldOutLabels(np.tile([0.9, 0.1, 0.0], (20, 1)), np.tile([0.0, 0.0, 1.0], (20, 1)))
    found = estimate_accuracy(held_out, np.tile([0.6, 0.4, 0.0], (50, 1)), 20)
    assert found is not None
    assert np.isfinite([found["accuracy"], found["balanced_accuracy"], *found["interval"]]).all()
