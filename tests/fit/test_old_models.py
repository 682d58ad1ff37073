"""Models saved by release 0.1 load, say what they said, and can be saved again.

``models_0_1/make.py`` made them, with what each model said of a few rows.
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._answers.committee.answer import CommitteeAnswer
from biglp._core.errors import ModelFileError
from biglp._fit.model import VERSION
from cli_tools import done

FOLDER = Path(__file__).parent / "models_0_1"
CLASSIFIERS = (
    "committee",
    "committee_trees_and_nearest",
    "committee_projected",
    "anchors",
    "nystrom",
    "nystrom_share",
    "glnp",
    "glnp_mu",
    "linear",
    "poisson",
)
REGRESSORS = ("regressor", "regressor_two")
MEMBERS = {
    "committee": ["spread", "spread", "spread", "logistic", "class means"],
    "committee_trees_and_nearest": [
        *["spread", "spread", "spread", "logistic", "class means"],
        *["forest", "nearest labels"],
    ],
    "committee_projected": ["spread", "spread", "spread", "logistic", "class means"],
}


def version_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))["version"]


def said(name):
    """Rows and what release 0.1 said of them."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        return dict(arrays)


def test_every_file_is_looked_at():
    found = {path.stem for path in FOLDER.glob("*.biglp")}
    assert found == {*CLASSIFIERS, *REGRESSORS}
    assert {version_of(path) for path in FOLDER.glob("*.biglp")} == {1}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_says_what_it_said(name, tmp_path):
    expected = said(name)
    loaded = LowRankLabelPropagation.load(FOLDER / f"{name}.biglp")
    np.testing.assert_array_equal(loaded.predict(expected["rows"]), expected["classes"])
    found = loaded.predict_proba(expected["rows"])
    assert found.dtype == expected["probabilities"].dtype
    np.testing.assert_allclose(found, expected["probabilities"], atol=1e-6)
    loaded.save(tmp_path / "again.biglp")
    assert version_of(tmp_path / "again.biglp") == VERSION > 1
    again = LowRankLabelPropagation.load(tmp_path / "again.biglp")
    np.testing.assert_array_equal(again.predict_proba(expected["rows"]), found)
    assert again.report_ == loaded.report_
    again.save(tmp_path / "third.biglp")
    assert (tmp_path / "third.biglp").read_bytes() == (tmp_path / "again.biglp").read_bytes()


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_says_what_it_said(name, tmp_path):
    expected = said(name)
    loaded = LowRankLabelPropagationRegressor.load(FOLDER / f"{name}.biglp")
    found = loaded.predict(expected["rows"])
    np.testing.assert_allclose(found, expected["values"], rtol=1e-9)
    loaded.save(tmp_path / "again.biglp")
    again = LowRankLabelPropagationRegressor.load(tmp_path / "again.biglp")
    np.testing.assert_array_equal(again.predict(expected["rows"]), found)
    with pytest.raises(ModelFileError, match="predicts numbers"):
        LowRankLabelPropagation.load(FOLDER / f"{name}.biglp")


@pytest.mark.parametrize("name", MEMBERS)
def test_the_members_of_a_committee_are_found_again(name):
    loaded = LowRankLabelPropagation.load(FOLDER / f"{name}.biglp")
    answer = loaded._model.answer
    assert isinstance(answer, CommitteeAnswer)
    assert [one.member for one in answer.opinions] == MEMBERS[name]
    weights = [member["weight"] for member in loaded.report_["members"]]
    np.testing.assert_allclose([one.weight for one in answer.opinions], weights)


@pytest.mark.parametrize("name", ["committee_trees_and_nearest", "glnp", "linear"])
def test_the_command_line_predicts_with_them(name, tmp_path):
    expected = said(name)
    np.save(tmp_path / "rows.npy", expected["rows"])
    model = FOLDER / f"{name}.biglp"
    done("predict", model, tmp_path / "rows.npy", "-o", tmp_path / "labels.npy", "-q")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected["classes"])


def test_they_suggest_rows():
    expected = said("committee")
    loaded = LowRankLabelPropagation.load(FOLDER / "committee.biglp")
    assert len(set(loaded.suggest(5, expected["rows"]))) == 5
