"""scikit-learn's own checks, its searches and scores, and folds of semi-supervised data."""

from itertools import chain

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor, SemiSupervisedKFold
from biglp._core import LabelError, ParameterError
from helpers import blobs, measured_problem, model

WEIGHTS_ARE_OF_LABELS = (
    "it repeats rows and labels; here a weight repeats a label, and the graph, its landmarks and "
    "the scaling are those of the rows as they are (tests/doors/test_soft_labels.py has the rule)"
)
EXPECTED_FAILURES = {
    "check_classifiers_classes": (
        "its y holds the classes -1 and 1, and here -1 marks unlabelled rows, as it does in "
        "scikit-learn's own LabelSpreading"
    ),
    "check_dtype_object": (
        "it wants a TypeError for a dict among the values; here every unusable row is a "
        "BadRowsError, a ValueError that names the value and says what to do"
    ),
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_OF_LABELS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_OF_LABELS,
}
"""Every check that is not passed, with its reason. scikit-learn itself skips check_array_api_input
where SCIPY_ARRAY_API is not set."""


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@parametrize_with_checks(
    [
        LowRankLabelPropagation(),
        LowRankLabelPropagation(factor="nystrom", solver="iterative"),
        LowRankLabelPropagationRegressor(),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def kinds_of_labels():
    X, y, _ = blobs(n=90, labelled=20)
    texts = np.array([None if label < 0 else f"class {label}" for label in y], dtype=object)
    shares = np.zeros((len(y), 3))
    shares[y >= 0] = np.eye(3)[y[y >= 0]]
    return X, [y, texts, texts.tolist(), np.where(y < 0, np.nan, y), shares]


def hidden_rows(n_splits, y, seed=None):
    folds = SemiSupervisedKFold(n_splits, random_state=seed).split(np.zeros((len(y), 1)), y)
    return [test.tolist() for _, test in folds]


def test_unlabelled_rows_are_in_every_training_part_and_in_no_test():
    X, labels = kinds_of_labels()
    first = hidden_rows(4, labels[0])
    assert sorted(chain(*first)) == np.flatnonzero(labels[0] >= 0).tolist()
    for y in labels:
        assert hidden_rows(4, y) == first
        for train, test in SemiSupervisedKFold(4).split(X, y):
            assert sorted([*train, *test]) == list(range(len(X)))
    measured = np.array([0.5, -1.0, 2.0, np.nan, 3.5])  # these may be minus one
    assert sorted(chain(*hidden_rows(2, measured))) == [0, 1, 2, 4]


def test_classes_are_dealt_out_evenly_and_rare_ones_stay_in_training():
    y = np.repeat([0, 1, 2, 3, -1], [11, 6, 2, 1, 30])
    assert hidden_rows(5, y, 3) != hidden_rows(5, y) == hidden_rows(5, y, 0)
    counts = np.array([np.bincount(y[test], minlength=4) for test in hidden_rows(5, y, 3)])
    assert np.ptp(counts, axis=0).tolist() == [1, 1, 1, 0]
    assert counts.sum(axis=0).tolist() == [11, 6, 2, 0]  # one label is never hidden
    assert np.ptp(counts.sum(axis=1)) <= 1
    assert repr(SemiSupervisedKFold(3)) == "SemiSupervisedKFold(n_splits=3, random_state=None)"


@pytest.mark.parametrize(
    ("n_splits", "y", "error", "words"),
    [
        (1, [0, 1], ParameterError, "n_splits=1 cannot be used; give an integer of 2"),
        (2, None, LabelError, "no labels to hide"),
        (5, [0, 0, 1, 1, 2, -1], LabelError, "only 4 of the 5 labels can be hidden"),
        (2, [-1, -1], LabelError, "none of the 2 rows has a label"),
    ],
)
def test_what_cannot_be_split(n_splits, y, error, words):
    with pytest.raises(error, match=words):
        list(SemiSupervisedKFold(n_splits).split(np.zeros((6 if y is None else len(y), 1)), y))


def test_cross_val_score_counts_hidden_labels_only():
    X, labels = kinds_of_labels()
    for y in labels:
        scores = cross_val_score(model(), X, y, cv=SemiSupervisedKFold(4), error_score="raise")
        assert scores.mean() > 0.6  # .2, if unlabelled rows counted as wrong
    named = cross_val_score(model(), X, labels[1], cv=SemiSupervisedKFold(4), scoring="accuracy")
    assert named.tolist() == scores.tolist()
    # Also in scikit-learn's own folds.
    assert cross_val_score(model(), X, labels[0], cv=3, error_score="raise").mean() > 0.6
    X, y, *_ = measured_problem()
    scores = cross_val_score(LowRankLabelPropagationRegressor(), X, y, cv=SemiSupervisedKFold(3))
    assert np.isfinite(scores).all()


def test_score_ignores_unlabelled_rows():
    X, y, truth = blobs(n=90, labelled=20)
    fitted = model().fit(X, y)
    right = fitted.predict(X) == truth
    assert fitted.score(X, truth) == right.mean()
    shown = [None if label < 0 else int(label) for label in y]
    shares = np.where(y[:, None] >= 0, np.eye(3)[y], 0.0)
    for labels in (y, shown, shares):
        assert fitted.score(X, labels) == right[y >= 0].mean()
    weights = np.arange(90.0)
    assert fitted.score(X, y, weights) == np.average(right[y >= 0], weights=weights[y >= 0])
    X, y, truth, *_ = measured_problem()
    fitted, known = LowRankLabelPropagationRegressor().fit(X, y), ~np.isnan(y)
    assert fitted.score(X, y) == pytest.approx(fitted.score(X[known], y[known]))
    assert 0 < fitted.score(X, truth) < 1
    with pytest.raises(LabelError, match="none of the 150 rows has a target"):
        fitted.score(X, np.full(150, np.nan))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(90, -1), "none of the 90 rows has a label in y"),
        (np.full(90, "1"), "y has labels such as '1', but the classes of the model are such as 0"),
        (np.zeros(80, dtype=int), "y has 80 entries but X has 90 rows"),
        (np.full((90, 2), 0.5), "y has 2 columns, but the model has 3 classes"),
    ],
)
def test_what_cannot_be_scored(y, words):
    X, known, _ = blobs(n=90, labelled=20)
    with pytest.raises(LabelError, match=words):
        model().fit(X, known).score(X, y)
