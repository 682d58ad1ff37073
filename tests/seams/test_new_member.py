"""A member from nothing but the base class and one line: heard, reported, saved and loaded.

The classes lie in stripes along one feature, too narrow for anybody else to see; the member knows
the sign of the wave that makes them.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import ModelFileError
from biglp._core.arrays import like, namespace
from biglp._core.size import Cost, Size
from biglp._engines import ThreadEngine
from biglp._fit.plan import plan_fit
from biglp._learn.committee import MEMBERS
from biglp._learn.committee.member import Member, MemberFit, MemberModel
from biglp._learn.committee.starting_weights import everywhere
from cli_tools import done
from helpers import rows_in_a_block, settings_of

pytestmark = pytest.mark.usefixtures("registered")
FIT = ("fit", "rows.npy", "--labels", "labels.npy", "-k", "20", "-o", "out")


@dataclass(frozen=True)
class WaveModel(MemberModel):
    """Logits from a wave along one column of the prepared rows: class 1 where it is above zero."""

    signs: np.ndarray

    def of(self, rows):
        wave = namespace(rows).sin(40.0 * rows[:, 0])[:, None]
        return 2.0 * wave * like(rows, self.signs)


class ToyMember(Member):
    """Knows the truth, whatever the labels are."""

    name, starts, worth = "toy", (everywhere(0.2),), 0.05
    model = WaveModel

    @classmethod
    def cost(cls, size):
        return Cost(fixed=7 << 20, block=1 << 20)

    def learn(self, evidence):
        model = WaveModel(np.array([[-1.0, 1.0]]))
        held_out = model.of(evidence.rows)
        held_out[evidence.lone] = np.nan
        return MemberFit(model, held_out, model.of(evidence.sample_rows))


class SilentMember(ToyMember):
    """Is not worth asking."""

    @classmethod
    def candidates(cls, evidence):
        return []


@pytest.fixture
def registered():
    MEMBERS["toy"] = ToyMember
    yield
    del MEMBERS["toy"]


@pytest.fixture
def problem():
    """Rows of which nobody but the new member can say what is what, and a hundred labels."""
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


def test_it_is_heard_and_reported(problem):
    X, y, truth = problem
    fitted = estimator().fit(X, y)
    weights = weights_of(fitted.report_)
    assert list(weights)[-1] == "toy"
    assert max(weights, key=weights.get) == "toy"
    found = {member["member"]: member["accuracy"] for member in fitted.report_["members"]}
    assert found["toy"] == 1.0
    assert accuracy(fitted.transduction_, y, truth) > 0.93
    np.testing.assert_array_equal(fitted.predict(X)[y < 0], fitted.transduction_[y < 0])


def test_without_it_nobody_knows(problem):
    X, y, truth = problem
    MEMBERS["toy"] = SilentMember
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
    assert len(set(loaded.suggest(4, X))) == 4
    rows = fitted.suggest(5)
    fitted.update_labels(rows, truth[rows])
    assert "toy" in weights_of(fitted.report_)
    del MEMBERS["toy"]
    with pytest.raises(ModelFileError, match="toy"):
        LowRankLabelPropagation.load(tmp_path / "toy.biglp")
    MEMBERS["toy"] = ToyMember


def test_a_member_below_its_worth_is_dropped(problem):
    X, y, _ = problem
    wrong = np.where(y < 0, -1, 1 - y)  # whatever it says, the labels say otherwise
    fitted = estimator().fit(X, wrong)
    assert "toy" not in weights_of(fitted.report_)
    assert "toy" not in {one.member for one in fitted._model.answer.models}


def test_any_cut_and_any_threads_give_the_same(problem):
    X, y, _ = problem
    expected = estimator(engine="serial").fit(X, y)
    with rows_in_a_block(61):
        found = estimator(engine=ThreadEngine(3)).fit(X, y)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)


def test_the_plan_reckons_with_it():
    size = Size(20_000, 100, 3, 500, 100.0, np.dtype(np.float32))
    settings, engine = settings_of(LowRankLabelPropagation(memory="4GB")), ThreadEngine(2)
    with_it = plan_fit(settings, size, engine)
    del MEMBERS["toy"]
    without = plan_fit(settings, size, engine)
    MEMBERS["toy"] = ToyMember
    assert with_it.small - without.small == 7 << 20
    assert with_it.blocks - without.blocks == 2 << 20


def test_the_command_line_asks_it_too(problem, tmp_path, monkeypatch):
    X, y, truth = problem
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", X)
    np.save("labels.npy", y)
    planned = done(*FIT, "--scaling", "none", "--dry-run").stdout
    assert "900 rows" in planned.replace("\xa0", " ")
    done(*FIT, "--scaling", "none", "-q")
    summary = json.loads(Path("out/summary.json").read_text())
    assert weights_of(summary["settings"])["toy"] > 0.2
    labels = np.load("out/labels.npy")
    assert accuracy(labels, y, truth) > 0.93
    np.testing.assert_array_equal(labels, estimator().fit(X, y).transduction_)
    done("predict", "out/model.biglp", "rows.npy", "-o", "new.npy", "-q")
    assert (np.load("new.npy") == truth).mean() > 0.93
