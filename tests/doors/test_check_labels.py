"""Which labels are doubtful: planted ones are found, in every way that labels can be held out."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from biglp import LowRankLabelPropagation
from biglp._algebra import systems
from biglp._core import ParameterError
from biglp._fit import update as check
from biglp._fit.update import with_only
from biglp._labels import Labels
from helpers import fitted_blobs, soft_problem

ROWS, TRUTH = load_digits(return_X_y=True)
pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


def planted(n_labels=300, n_wrong=30, seed=0):
    """Labels of the first digits, some of them wrong, and the rows of those."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(len(TRUTH)) < n_labels, TRUTH, -1)
    wrong = rng.choice(n_labels, n_wrong, replace=False)
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, n_wrong)) % 10
    return labels, wrong


def average_precision(found, wrong):
    """Average precision of a list; what is not on it is not found."""
    hits = np.isin(found.rows, wrong)
    return ((hits.cumsum() / np.arange(1, len(hits) + 1))[hits]).sum() / len(wrong)


@pytest.fixture(scope="module")
def digits():
    """A model of digits, some of whose labels are wrong, and the rows of those."""
    labels, wrong = planted()
    return LowRankLabelPropagation(engine="serial").fit(ROWS, labels), wrong


def test_planted_labels_are_found(digits):
    model, wrong = digits
    found = model.doubtful_labels()
    assert average_precision(found, wrong) > 0.9
    named = model.doubtful_labels(least=0.5)
    assert model.report_["probably_wrong_labels"] == found.n_probably_wrong == len(named)
    assert 20 <= len(named) <= 40
    right = named.suggested_labels == TRUTH[named.rows]
    assert right.mean() > 0.85
    again = model.doubtful_labels()
    np.testing.assert_array_equal(again.rows, found.rows)


def test_the_same_list_for_any_engine_and_cut(engine):
    expected = fitted_blobs()[0].doubtful_labels(least=0.0)
    for rows in (70, 13) if engine.shares_memory else (70,):
        found = fitted_blobs(engine=engine, rows=rows)[0].doubtful_labels(least=0.0)
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_allclose(found.wrong, expected.wrong, rtol=1e-9)


def test_corrected_labels_are_doubtful_no_more():
    labels, _ = planted(seed=1)
    model = LowRankLabelPropagation(engine="serial").fit(ROWS, labels)
    named = model.doubtful_labels(least=0.5)
    model.update_labels(named.rows, TRUTH[named.rows])
    after = model.doubtful_labels(least=0.5)
    assert len(after) < 0.5 * len(named)
    assert after.n_checked == 300
    fresh = np.where(np.isin(np.arange(len(TRUTH)), named.rows), TRUTH, labels)
    again = LowRankLabelPropagation(engine="serial").fit(ROWS, fresh).doubtful_labels()
    np.testing.assert_array_equal(model.doubtful_labels().rows, again.rows)


@pytest.mark.parametrize("factor", ["nystrom", "glnp", "linear"])
def test_other_methods_hold_out_in_folds(factor):
    found, _, y, _ = fitted_blobs(factor)
    assert found._held_out is None
    every = found.doubtful_labels(least=0.0)
    np.testing.assert_array_equal(np.sort(every.rows), np.flatnonzero(y >= 0))


def test_labels_beyond_the_part_that_was_held_out(monkeypatch):
    labels, wrong = planted()
    for kind in (systems.DenseSystem, systems.Spectrum, systems.SparseSystem):
        monkeypatch.setattr(kind, "most_labelled", 120)
    model = LowRankLabelPropagation(engine="serial").fit(ROWS, labels)
    assert len(model._held_out.rows) == 120
    found = model.doubtful_labels(least=0.0)
    assert found.n_checked == 300
    assert average_precision(found, wrong) > 0.85
    monkeypatch.setattr(check, "MOST_LEARNT", 100)  # more labels than are learnt from
    assert average_precision(model.doubtful_labels(), wrong) > 0.7


def test_a_class_of_one_label_is_not_judged():
    labels, _ = planted(n_wrong=0)
    labels[7] = 55
    model = LowRankLabelPropagation(engine="serial").fit(ROWS, labels)
    found = model.doubtful_labels(least=0.0)
    assert (found.n_labels, found.n_checked) == (300, 299)
    assert 7 not in found.rows
    paper = LowRankLabelPropagation.paper(k=40).fit(ROWS, labels).doubtful_labels(least=0.0)
    assert (paper.n_checked, 7 in paper.rows) == (299, False)


def test_weights_and_distributions():
    labels, wrong = planted()
    weights = np.ones(len(labels))
    weights[wrong[:10]] = 4.0
    model = LowRankLabelPropagation(engine="serial").fit(ROWS, labels, sample_weight=weights)
    found = model.doubtful_labels(least=0.0)
    doubt = dict(zip(found.rows, found.wrong, strict=True))
    assert np.mean([doubt[row] for row in wrong[:10]]) < np.mean([doubt[row] for row in wrong[10:]])
    X, _, Y, *_ = soft_problem()
    soft = LowRankLabelPropagation(engine="serial").fit(X, Y, classes=["a", "b", "c"])
    every = soft.doubtful_labels(least=0.0)
    assert set(every.labels) | set(every.suggested_labels) <= {"a", "b", "c"}
    given = np.array(["a", "b", "c"])[Y[every.rows].argmax(axis=1)]
    np.testing.assert_array_equal(every.labels, given)


def test_what_is_refused(digits, tmp_path):
    model, _ = digits
    for least in (-0.1, 1.5, "much"):
        with pytest.raises(ParameterError, match="from 0 to 1"):
            model.doubtful_labels(least)
    model.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    for gone in (loaded, pickle.loads(pickle.dumps(model))):
        with pytest.raises(ParameterError, match="biglp check"):
            gone.doubtful_labels()


def labels_of(codes):
    """Labels of as many rows."""
    codes = np.asarray(codes)
    return Labels(np.arange(codes.max() + 1), np.arange(len(codes)), codes, len(codes))


class TestFolds:
    def test_every_label_once_and_classes_in_equal_parts(self):
        labels = labels_of(np.arange(1000) % 5)
        found = check.folds(labels, np.arange(1000), seed=0)
        assert [len(fold) for fold in found] == [200] * 5
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(1000))
        for fold in found:
            np.testing.assert_array_equal(np.bincount(labels.codes[fold]), [40] * 5)

    def test_labels_of_a_class_are_never_withheld_together(self):
        labels = labels_of([0] * 50 + [1] * 2 + [2])
        for fold in check.folds(labels, np.arange(50, 53), seed=0):
            kept, asked = check.split(labels, fold, seed=0)
            assert (labels.take(kept).counts > 0).all()
            assert 52 not in asked
            assert not set(kept) & set(asked)

    def test_many_labels_are_learnt_from_in_part(self, monkeypatch):
        monkeypatch.setattr(check, "MOST_LEARNT", 30)
        labels = labels_of([0] * 150 + [1] * 147 + [2] * 3)
        found = check.folds(labels, np.arange(300), seed=0)
        assert len(found) == 2
        for fold in found:
            kept, asked = check.split(labels, fold, seed=0)
            assert 30 <= len(kept) <= 33
            assert (labels.take(kept).counts > 0).all()
            np.testing.assert_array_equal(asked, fold)


def test_labels_on_a_graph_of_ones_own():
    graph = kneighbors_graph(ROWS[:900], 10)
    labels, wrong = planted()
    labels = labels[:900]
    model = LowRankLabelPropagation(factor="precomputed").fit(graph, labels)
    found, problem = model.doubtful_labels(0.0), model._problem
    # Withheld in folds and added up anew: the sums of a fit without these labels, bit by bit.
    kept = np.setdiff1d(np.arange(300), np.arange(0, 300, 5))
    fewer = np.where(np.isin(np.arange(len(labels)), kept), labels, -1)
    again = LowRankLabelPropagation(factor="precomputed").fit(graph, fewer)._problem
    some = with_only(problem, problem.labels.take(kept))
    np.testing.assert_array_equal(some.sums.targets, again.sums.targets)
    listed = found.rows[: len(wrong)]
    assert np.isin(listed, wrong).mean() > 0.75
