"""Classes that look as if they meant "no label" are asked about; ordinary ones are not."""

import warnings

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.errors import LabelError, LabelWarning
from biglp._labels.labels import encode_labels, looks_unlabelled, nothing_to_label, suspicions
from helpers import blobs


@pytest.mark.parametrize("name", ["unknown", "N/A", "?", " None ", "<NA>", "no_label"])
def test_names_that_usually_mean_no_label(name):
    assert looks_unlabelled(name)


@pytest.mark.parametrize("name", ["no", "other", "nonesuch", "0", 0, -2, True, "Nan A."])
def test_names_that_do_not(name):
    assert not looks_unlabelled(name)


def test_minus_one_among_texts_is_no_label():
    for y in (["a", "-1", "b", "-1"], np.array(["a", "-1", "b", ""]), ["a", -1, "b", None]):
        labels = encode_labels(y, 4)
        assert labels.rows.tolist() == [0, 2]
        assert labels.classes.tolist() == ["a", "b"]
    with pytest.raises(LabelError, match="-1 counts as unlabelled"):
        encode_labels(["1", "-1", "1"], 3)


def test_a_class_of_nearly_all_rows_is_suspected():
    y = np.array([7] * 97 + [1, 2, -1])
    (found,) = suspicions(encode_labels(y, 100))
    assert "97.0% of all 100 rows have the label 7" in str(found)
    assert "--unlabelled 7" in str(found)
    y[:10] = -1
    assert not suspicions(encode_labels(y, 100))
    assert not suspicions(encode_labels(y[-30:], 30))


def test_classes_that_differ_in_case_only():
    (found,) = suspicions(encode_labels(["Code", "code", "No  answer", "no answer", "other"], 5))
    assert "'Code', 'code'; 'No  answer', 'no answer'" in str(found)
    assert not suspicions(encode_labels(["a", "b", "A b"], 3))


def test_every_row_has_a_label():
    labels = encode_labels([0, 1, 1], 3)
    assert "every one of the 3 rows has a label" in str(nothing_to_label(labels)[0])
    assert not nothing_to_label(encode_labels([0, 1, -1], 3))


def test_the_estimator_asks():
    X, y, _ = blobs(n=200)
    names = np.where(y < 0, "unknown", np.array(["a", "b", "c"])[y])
    model = LowRankLabelPropagation(random_state=0, engine="serial")
    with pytest.warns(LabelWarning, match=r"have the label 'unknown'.*None or -1 for them"):
        model.fit(X, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelWarning)
        model.fit(X, np.where(y < 0, "", names))
