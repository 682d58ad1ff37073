"""A member from nothing but the base class and one line: heard, reported, saved and loaded.

The classes lie in stripes along one feature, too narrow for anybody else to see; the member knows
the sign of the wave that makes them.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import Cost, MemoryBudgetError, ModelFileError, like, namespace
from biglp._engines import ThreadEngine
from biglp._learn import MEMBERS, Member, MemberFit, MemberModel, everywhere
from helpers import rows_in_a_block

pytestmark = pytest.mark.usefixtures("registered")


@dataclass(frozen=True)
class WaveModel(MemberModel):
    signs: np.ndarray

    def of(self, rows):
        wave = namespace(rows).sin(40.0 * rows[:, 0])[:, None]
        return 2.0 * wave * like(rows, self.signs)


class ToyMember(Member):
    name, starts, worth = "toy", (everywhere(0.2),), 0.05
    model = WaveModel
    needs, asked = 7 << 20, True

    @classmethod
    def candidates(cls, evidence):
        return [cls()] if cls.asked else []

    @classmethod
    def cost(cls, size):
        return Cost(fixed=cls.needs)

    def learn(self, evidence):
        model = WaveModel(np.array([[-1.0, 1.0]]))
        held_out = model.of(evidence.rows)
        held_out[evidence.lone] = np.nan
        return MemberFit(model, held_out, model.of(evidence.sample_rows))


@pytest.fixture
def registered():
    MEMBERS["toy"] = ToyMember
    yield
    if "toy" in MEMBERS:
        del MEMBERS["toy"]


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(900, 3)).astype(np.float32)
    truth = (np.sin(40.0 * X[:, 0]) > 0).astype(int)
    return X, np.where(np.arange(900) < 100, truth, -1), truth


def estimator(**changes):
    return LowRankLabelPropagation(n_landmarks=20, scaling="none", **changes)


def weights_of(report):
    return {member["member"]: member["weight"] for member in report["members"]}


def accuracy(labels, y, truth):
    return (labels == truth)[y < 0].mean()


def test_it_is_heard_and_reported_in_any_cut(problem):
    X, y, truth = problem
    fitted = estimator(engine="serial").fit(X, y)
    weights = weights_of(fitted.report_)
    assert list(weights)[-1] == "toy"
    assert max(weights, key=weights.get) == "toy"
    found = {member["member"]: member["accuracy"] for member in fitted.report_["members"]}
    assert found["toy"] == 1.0
    assert accuracy(fitted.transduction_, y, truth) > 0.93
    np.testing.assert_array_equal(fitted.predict(X)[y < 0], fitted.transduction_[y < 0])
    with rows_in_a_block(61):
        again = estimator(engine=ThreadEngine(3)).fit(X, y)
    np.testing.assert_array_equal(again.transduction_, fitted.transduction_)


def test_where_it_is_not_asked_or_below_its_worth_it_is_not_heard(problem, monkeypatch):
    X, y, truth = problem
    wrong = np.where(y < 0, -1, 1 - y)  # whatever it says, the labels say otherwise
    assert "toy" not in weights_of(estimator().fit(X, wrong).report_)
    monkeypatch.setattr(ToyMember, "asked", False)
    fitted = estimator().fit(X, y)
    assert "toy" not in weights_of(fitted.report_)
    assert accuracy(fitted.transduction_, y, truth) < 0.8


def test_saved_and_loaded_it_says_the_same(problem, tmp_path):
    X, y, truth = problem
    fitted = estimator().fit(X, y)
    fitted.save(tmp_path / "toy.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "toy.biglp")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert weights_of(loaded.report_) == weights_of(fitted.report_)
    rows = fitted.suggest(5)
    fitted.update_labels(rows, truth[rows])
    assert "toy" in weights_of(fitted.report_)
    del MEMBERS["toy"]
    with pytest.raises(ModelFileError, match="toy"):
        LowRankLabelPropagation.load(tmp_path / "toy.biglp")


def test_the_plan_reckons_with_it(problem, monkeypatch):
    X, y, _ = problem
    estimator(memory="600MB").fit(X, y)
    monkeypatch.setattr(ToyMember, "needs", 600 << 20)
    with pytest.raises(MemoryBudgetError):
        estimator(memory="600MB").fit(X, y)
