"""Later labels for estimators that were copied, unpickled or loaded."""

import pickle
from copy import copy, deepcopy

import pytest
from sklearn.base import clone

from biglp import LowRankLabelPropagation
from biglp._core.errors import ParameterError
from helpers import blobs, model

NEW, ANSWERS = [50, 60, 70], [0, 1, 7]


@pytest.fixture
def fitted():
    X, y, _ = blobs(n=120, labelled=12)
    return model().fit(X, y), X, y


def with_answers(y):
    """All labels together."""
    together = y.copy()
    together[NEW] = ANSWERS
    return together


@pytest.mark.parametrize("duplicate", [copy, deepcopy])
def test_first_hour_6_copies_take_labels_and_leave_the_original_alone(fitted, duplicate):
    first, X, y = fitted
    before = first.transduction_.copy()
    second = duplicate(first)
    second.update_labels(NEW, ANSWERS)
    fresh = clone(first).fit(X, with_answers(y))
    assert second.transduction_.tolist() == fresh.transduction_.tolist()
    assert second.report_["labelled_rows"] == 15
    assert first.report_["labelled_rows"] == 12
    assert first.transduction_.tolist() == before.tolist()
    assert first.classes_.tolist() == [0, 1, 2]
    assert len(second.suggest(4)) == len(first.suggest(4)) == 4
    assert second.doubtful_labels(0).rows.tolist() != first.doubtful_labels(0).rows.tolist()


def test_first_hour_6_a_deep_copy_has_its_own_answers_and_no_second_set_of_rows(fitted):
    first, *_ = fitted
    second = deepcopy(first)
    assert second.transduction_ is not first.transduction_
    assert second._model is not first._model
    assert second._problem is first._problem  # rows are read, never changed


def test_first_hour_6_unpickled_and_loaded_models_take_labels_with_the_rows(fitted, tmp_path):
    first, X, y = fitted
    first.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    loaded.set_params(**first.get_params())
    fresh = clone(first).fit(X, with_answers(y))
    for again in (pickle.loads(pickle.dumps(first)), loaded):
        with pytest.raises(ParameterError, match=r"update_labels\(rows, labels, X=X, y=y\)"):
            again.update_labels(NEW, ANSWERS)
        with pytest.raises(ParameterError, match="X has 100 rows, but the model was fitted on 120"):
            again.update_labels(NEW, ANSWERS, X=X[:100], y=y[:100])
        again.update_labels(NEW, ANSWERS, X=X, y=y)
        assert again.transduction_.tolist() == fresh.transduction_.tolist()
        assert again.predict_proba(X).tolist() == fresh.predict_proba(X).tolist()
        again.update_labels(NEW[:1], [-1])  # it holds the rows now
        assert again.report_["labelled_rows"] == 14
