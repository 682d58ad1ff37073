"""Which rows to label next: the posterior against brute force, and the choice on every engine."""

import pickle
from unittest import mock

import numpy as np
import pytest

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._core.errors import LabelError, ParameterError
from biglp._engines import SerialEngine
from biglp._fit import suggest as _suggest
from biglp._fit.suggest import SampleGraph, leading_eigenpairs
from biglp._propagate import systems as spectra
from biglp._propagate.posterior import LAST, OVERLAP, Posterior, choose_batch
from helpers import blobs, model, rows_in_a_block

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
ALPHA = 0.9


@pytest.fixture
def field():
    """Features of 40 rows in the basis of the eigenvectors of their Gram matrix, and λ."""
    X, _, _ = blobs(n=40)
    Z = ref.anchor_weights(X, X[::4], 1.5, 3)
    Phi = Z / np.sqrt(Z.sum(axis=0))
    values, vectors = leading_eigenpairs(Phi, 100)
    return Phi @ vectors, values


def weighted_total(Phi, alpha, labelled, noise, weights):
    return weights @ np.diag(ref.field_covariance(Phi, alpha, labelled, noise))


# --- the posterior ---------------------------------------------------------------------------


def test_variances_agree_with_the_dense_field(field):
    Phi, values = field
    labelled = [3, 17, 29]
    found = Posterior.of(values, len(Phi), Phi[labelled], ALPHA)
    expected = ref.field_covariance(Phi, ALPHA, labelled, found.noise)
    np.testing.assert_allclose(Phi @ found.covariance @ Phi.T, expected, atol=1e-10)
    np.testing.assert_allclose(found.variances(Phi), np.diag(expected), atol=1e-10)
    prior = np.diag(ref.field_covariance(Phi, ALPHA, [], 1.0))
    assert found.noise == pytest.approx(prior.mean())
    assert (np.diag(expected) < prior).all()


def test_one_more_label_is_a_change_of_rank_one(field):
    Phi, values = field
    before = Posterior.of(values, len(Phi), Phi[[3]], ALPHA)
    again = Posterior.of(values, len(Phi), Phi[[3, 8]], ALPHA)
    np.testing.assert_allclose(before.observed(Phi[8]).covariance, again.covariance, atol=1e-10)


def test_gain_is_the_variance_that_a_label_takes(field):
    Phi, values = field
    weights = np.random.default_rng(0).random(len(Phi))
    found = Posterior.of(values, len(Phi), Phi[[3, 8]], ALPHA)
    gains = found.gains(Phi, (Phi * weights[:, None]).T @ Phi)
    now = weighted_total(Phi, ALPHA, [3, 8], found.noise, weights)
    for j in (0, 11, 39):
        then = weighted_total(Phi, ALPHA, [3, 8, j], found.noise, weights)
        assert gains[j] == pytest.approx(now - then, rel=1e-8)


def test_the_batch_is_the_naive_one(field):
    """One row after the other, everything about it computed anew from n × n matrices."""
    Phi, values = field
    rng = np.random.default_rng(1)
    weights, logs = rng.random(len(Phi)), rng.normal(size=len(Phi))
    posterior = Posterior.of(values, len(Phi), Phi[[3]], ALPHA)
    found = choose_batch(
        posterior,
        Phi,
        logs,
        (Phi * weights[:, None]).T @ Phi,
        6,
        gain_power=0.5,
        overlap_power=2.0,
    )
    labelled, chosen, penalty = [3], [], np.zeros(len(Phi))
    for _ in range(6):
        now = ref.field_covariance(Phi, ALPHA, labelled, posterior.noise)
        gains = [
            (weights @ now[:, j] ** 2) / (posterior.noise + now[j, j]) for j in range(len(Phi))
        ]
        scores = logs + penalty + 0.5 * np.log(gains)
        scores[chosen] = -np.inf
        best = int(np.argmax(scores))
        squared = now[:, best] ** 2 / (np.diag(now) * now[best, best])
        penalty += 2.0 * np.log(1 - OVERLAP * squared)
        labelled.append(best)
        chosen.append(best)
    np.testing.assert_array_equal(found, chosen)


def test_copies_come_last(field):
    Phi, values = field
    twice = np.vstack([Phi[:5], Phi[:5]])
    posterior = Posterior.of(values, len(Phi), Phi[:0], ALPHA)
    chosen = choose_batch(
        posterior, twice, np.zeros(10), np.eye(len(values)), 99, gain_power=1.0, overlap_power=0.0
    )
    assert sorted(chosen[:5] % 5) == sorted(chosen[5:] % 5) == list(range(5))
    assert LAST > 100


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_scale_gives_the_share_of_candidates(share):
    doubts = np.random.default_rng(0).random(1000) ** 3 + 1e-3
    graph = SampleGraph(np.ones(1), np.ones((1, 1)), 1000, doubts)
    chances = np.minimum(1.0, graph.scale(share) * doubts**_suggest.SIEVE_POWER)
    assert chances.mean() == pytest.approx(share)


# --- the rows that are suggested -------------------------------------------------------------

FACTORS = ("auto", "anchors", "nystrom", "glnp", "linear")


def estimator(factor="auto", **more):
    if factor == "glnp":
        more |= {"n_landmarks": 6, "factor_params": {"max_iter": 3}}
    return model(factor=factor, **more)


def fitted(factor="auto", n=400, engine="serial", rows=70):
    """A fitted estimator, its rows, labels and truth."""
    X, y, truth = blobs(n=n, labelled=12)
    X = np.abs(X)
    with rows_in_a_block(rows):
        return estimator(factor, engine=engine).fit(X, y), X, y, truth


@pytest.mark.parametrize("factor", FACTORS)
def test_unlabelled_rows_each_once(factor):
    found, _, y, _ = fitted(factor)
    rows = found.suggest(15)
    assert len(np.unique(rows)) == 15
    assert (y[rows] == -1).all()
    np.testing.assert_array_equal(rows, found.suggest(15))


@pytest.mark.parametrize("factor", ["auto", "nystrom", "glnp"])
def test_same_rows_on_every_engine(engine, factor, monkeypatch):
    monkeypatch.setattr(_suggest, "CANDIDATES", 40)  # so that not every row is a candidate
    monkeypatch.setattr(_suggest, "SAMPLE", 100)
    expected = fitted(factor)[0].suggest(8)
    np.testing.assert_array_equal(fitted(factor, engine=engine)[0].suggest(8), expected)


@pytest.mark.parametrize("factor", ["auto", "nystrom"])
def test_same_rows_for_any_cut(factor, monkeypatch):
    monkeypatch.setattr(_suggest, "CANDIDATES", 40)
    monkeypatch.setattr(_suggest, "SAMPLE", 100)
    expected = fitted(factor)[0].suggest(8)
    for rows in (13, 400):
        np.testing.assert_array_equal(fitted(factor, rows=rows)[0].suggest(8), expected)


def test_doubtful_rows_come_first():
    found, *_ = fitted()
    doubts = _suggest.doubt(found.label_distributions_)
    assert doubts[found.suggest(20)].mean() > 2 * doubts.mean()


def test_more_than_there_are():
    found, _, y, _ = fitted()
    np.testing.assert_array_equal(np.sort(found.suggest(10_000)), np.flatnonzero(y == -1))


def test_nothing_left_to_label():
    X, _, truth = blobs(n=60)
    assert model().fit(X, truth).suggest(3).shape == (0,)


def test_from_other_rows():
    found, X, *_ = fitted()
    other = np.random.default_rng(5).permutation(X)[:100]
    rows = found.suggest(7, other)
    assert len(np.unique(rows)) == 7
    assert rows.max() < 100
    with pytest.raises(ValueError, match="features"):
        found.suggest(3, other[:, :2])


@pytest.mark.parametrize("n", [0, -1, 2.5, "ten"])
def test_number_is_checked(n):
    with pytest.raises(ParameterError, match="n="):
        fitted()[0].suggest(n)


# --- new labels without a sweep --------------------------------------------------------------


@pytest.mark.parametrize("factor", FACTORS)
def test_update_is_a_fit_with_all_labels(factor):
    found, X, y, truth = fitted(factor)
    rows = found.suggest(9)
    labels = truth[rows].copy()
    labels[:2] = 7  # a new class
    wrong = np.flatnonzero(y >= 0)[:2]
    rows, labels = np.append(rows, wrong), np.append(labels, [0, -1])  # one other, one withdrawn
    found.update_labels(rows[:5], labels[:5]).update_labels(rows[5:], labels[5:])
    y = y.copy()
    y[rows] = labels
    with rows_in_a_block(70):
        fresh = estimator(factor).fit(X, y)
    np.testing.assert_array_equal(found.classes_, [0, 1, 2, 7])
    np.testing.assert_array_equal(found.transduction_, fresh.transduction_)
    np.testing.assert_allclose(found.label_distributions_, fresh.label_distributions_, atol=1e-9)
    np.testing.assert_array_equal(found.predict(X), fresh.predict(X))
    assert found.report_["labelled_rows"] == fresh.report_["labelled_rows"]
    np.testing.assert_array_equal(found.suggest(5), fresh.suggest(5))


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


def test_sweeps_are_counted():
    engine = Counting()
    found, *_, truth = fitted(engine=engine)
    engine.sweeps.clear()
    rows = found.suggest(6)
    assert engine.sweeps == ["suggestions"]
    engine.sweeps.clear()
    found.update_labels(rows, truth[rows])
    found.update_labels(rows[:1], [2])
    assert engine.sweeps == []
    assert found.transduction_[rows[0]] == 2
    assert len(found.label_distributions_) == len(truth)
    assert engine.sweeps == ["labels"]


def test_text_labels_and_new_ones():
    X, y, _ = blobs(n=90)
    words = np.array(["red", "blue", "green"])
    labels = np.where(y >= 0, words[y], "")
    found = model().fit(X, labels)
    row = int(np.flatnonzero(y < 0)[0])
    found.update_labels([row], ["aquamarine"])
    assert found.transduction_[row] == "aquamarine"
    assert list(found.classes_) == ["aquamarine", "blue", "green", "red"]


@pytest.mark.parametrize(
    ("rows", "labels", "error", "words"),
    [
        ([400], [1], ParameterError, "numbered 0 to 399"),
        ([-1], [1], ParameterError, "numbered 0 to 399"),
        ([3, 3], [1, 1], ParameterError, "more than once"),
        ([3.5], [1], ParameterError, "whole"),
        ([3, 4], [1], LabelError, "one label a row"),
        ([3], [1.5], LabelError, "fractions"),
    ],
)
def test_wrong_updates_change_nothing(rows, labels, error, words):
    found, *_ = fitted()
    before = found.transduction_
    with pytest.raises(error, match=words):
        found.update_labels(rows, labels)
    assert found.transduction_ is before


def test_pickles_without_the_rows():
    found, X, _, truth = fitted()
    rows = found.suggest(4)
    found.update_labels(rows, truth[rows])
    packed = pickle.dumps(found)
    again = pickle.loads(packed)
    np.testing.assert_array_equal(again.transduction_, found.transduction_)
    with pytest.raises(ParameterError, match="training rows"):
        again.update_labels(rows, truth[rows])
    with pytest.raises(ParameterError, match="suggest"):
        again.suggest(3)
    assert len(again.suggest(3, X)) == 3
    with pytest.raises(AttributeError, match="transduction_"):
        _ = LowRankLabelPropagation().transduction_


class TestWeightsAndMany:
    def test_update_keeps_weights_and_equals_a_refit(self):
        X, _, truth = blobs(n=200)
        known = np.where(np.arange(200) < 20, truth, -1)
        weights = 1.0 + np.arange(200) % 3
        later = np.where(np.arange(200) < 25, truth, -1)
        all_weights = np.where(np.arange(200) < 20, weights, 1.0)
        updated = model(factor="anchors").fit(X, known, weights)
        updated.update_labels(np.arange(20, 25), truth[20:25])
        refit = model(factor="anchors").fit(X, later, all_weights)
        np.testing.assert_allclose(
            updated.label_distributions_, refit.label_distributions_, atol=1e-10
        )

    def test_update_of_label_distributions_is_refused(self):
        X, _, truth = blobs(n=60)
        shares = np.where(np.arange(60)[:, None] < 10, 0.8 * np.eye(truth.max() + 1)[truth], 0.0)
        shares[:10] += 0.2 / shares.shape[1]
        fitted = model(factor="anchors").fit(X, shares)
        with pytest.raises(ParameterError, match="fitted on label distributions"):
            fitted.update_labels([20], [truth[20]])

    def test_clamped_labels_stay_clamped(self):
        X, _, truth = blobs(n=100)
        labels = np.where(np.arange(100) < 9, truth, -1)
        fitted = model(factor="anchors", clamp="hard").fit(X, labels)
        fitted.update_labels([50], [truth[50]])
        np.testing.assert_array_equal(
            fitted.label_distributions_[50], np.eye(truth.max() + 1)[truth[50]]
        )

    def test_more_landmarks_than_are_decomposed(self):
        X, _, truth = blobs(n=300)
        labels = np.where(np.arange(300) < 20, truth, -1)
        with mock.patch.multiple(spectra, DENSE_RANK=50, DENSE_WORK=0):
            fitted = model(factor="anchors", n_landmarks=100).fit(X, labels)
            rows = fitted.suggest(5)
            assert len(set(rows)) == 5
            fitted.update_labels(rows, truth[rows])
            labels[rows] = truth[rows]
            refit = model(factor="anchors", n_landmarks=100).fit(X, labels)
        np.testing.assert_array_equal(fitted.transduction_, refit.transduction_)
