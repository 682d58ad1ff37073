"""The committee as a whole: who is asked, who is heard, and what is reported."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp._core import Registry
from biglp._learn.committee import MEMBERS

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.UnlikeLabelsWarning")


def loads_the_same(model, rows, folder):
    model.save(folder / "model.biglp")
    loaded = LowRankLabelPropagation.load(folder / "model.biglp")
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))


def test_trees_are_asked_and_heard_where_thresholds_decide(tmp_path):
    rng = np.random.default_rng(1)
    rows = rng.random((3000, 12)).astype(np.float32)
    truth = ((rows[:, 3] > 0.35) ^ (rows[:, 7] > 0.6)).astype(int)
    labels = np.where(rng.random(3000) < 0.1, truth, -1)
    model = LowRankLabelPropagation().fit(rows, labels)
    weights = {item["member"]: item["weight"] for item in model.report_["members"]}
    assert weights["forest"] > weights["logistic"]
    assert (model.transduction_ == truth)[labels < 0].mean() > 0.9
    assert model.report_["unlabelled_rows_helped"] is not True  # there is no cluster
    loads_the_same(model, rows, tmp_path)


def test_trees_are_not_asked_about_principal_components():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(600, 5))
    rows = (hidden @ rng.normal(size=(5, 220))).astype(np.float32)
    labels = np.where(np.arange(600) < 60, hidden[:, 0] > 0, -1)
    model = LowRankLabelPropagation().fit(rows, labels)
    assert model.report_["directions"] == 40
    assert "forest" not in {item["member"] for item in model.report_["members"]}


@pytest.mark.parametrize("names", [("logistic", "forest"), ("forest",), ("spread",)], ids="-".join)
def test_a_committee_may_be_of_any_members(monkeypatch, names, tmp_path):
    rows, truth = load_digits(return_X_y=True)
    labels = np.where(np.arange(len(truth)) < 150, truth, -1)
    chosen = Registry({name: MEMBERS[name] for name in names})
    monkeypatch.setattr("biglp._learn.committee.method.MEMBERS", chosen)
    model = LowRankLabelPropagation().fit(rows, labels)
    assert {item["member"] for item in model.report_["members"]} >= {names[0]} - {"spread"}
    assert (model.transduction_ == truth)[150:].mean() > 0.75
    assert model.report_["graph_share"] == float(names == ("spread",))
    assert model.report_["unreached_rows"] == 0
    loads_the_same(model, rows, tmp_path)
