"""Rows unlike all labels: found when a class has none, not found otherwise."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp._core import UnlikeLabelsWarning
from biglp._fit import novelty as unlike
from helpers import rows_in_a_block


def fitted(missing=(), seed=0, each=6, **changes):
    """A model of the digits, with a few labels of each class but some."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), -1)
    for code in set(range(10)) - set(missing):
        y[rng.choice(np.flatnonzero(truth == code), each, replace=False)] = code
    settings = {"engine": "serial", "random_state": 0, **changes}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = LowRankLabelPropagation(**settings).fit(X, y)
    about = [str(w.message) for w in caught if issubclass(w.category, UnlikeLabelsWarning)]
    return found, truth, about


@pytest.fixture(scope="module")
def without_two():
    """A model that has no label of 0 and 6."""
    return fitted((0, 6))


def test_missing_classes_are_found(without_two):
    """Of labels and graphs drawn at random five in six find them; here half of eight must."""
    suggested, groups = 0, 0
    for seed, missing in enumerate([(0, 6), (2, 7), (4, 5), (1, 3)] * 2):
        found, truth, warned = fitted(missing, seed) if seed else without_two
        suggested += len(set(missing) & set(truth[found.suggest(20)]))
        group = found.report_["unlike_labels"]
        assert len(warned) == (group is not None)
        if group is not None:
            groups += 1
            assert 0.05 <= group["share"] <= 0.4
            assert np.isin(truth[group["rows"]], missing).any()
            assert all(f"{row:,}" in warned[0] for row in group["rows"])
    assert groups >= 4
    assert suggested >= 14  # of sixteen classes; one graph in forty leaves one out


def test_nothing_is_missing():
    warned = [bool(fitted(seed=seed)[2]) for seed in range(3)]
    assert sum(warned) == 0


def test_gone_when_the_class_is_labelled():
    fits = (fitted((0, 6), seed) for seed in range(8))  # one graph in six does not show them
    found, truth, _ = next(one for one in fits if one[2])
    rng = np.random.default_rng(1)
    more = [rng.choice(np.flatnonzero(truth == code), 12, replace=False) for code in (0, 6)]
    rows = np.concatenate(more)
    found.update_labels(rows, truth[rows])
    assert found.report_["unlike_labels"] is None


def test_same_group_for_any_cut(without_two):
    expected = without_two[0].report_["unlike_labels"]
    with rows_in_a_block(250):
        assert fitted((0, 6), engine="threads")[0].report_["unlike_labels"] == expected


def test_not_looked_for_in_few_rows(monkeypatch):
    monkeypatch.setattr(unlike, "LEAST_ROWS", 2000)
    found, _, warned = fitted((0, 6))
    assert found.report_["unlike_labels"] is None
    assert not warned


@pytest.mark.parametrize("factor", ["nystrom", "linear"])
def test_other_factors(factor):
    k = {"n_landmarks": "auto"} if factor == "linear" else {}
    assert "unlike_labels" in fitted(factor=factor, **k)[0].report_
