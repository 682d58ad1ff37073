"""A method and its answer from nothing but the base classes and a line each, through the steps.

The method is the nearest class mean in the space of the graph: B/counts are the mean features of
each class. A third line lets ``filter`` offer it.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from biglp._core import Cost, MemoryBudgetError, ParameterError, like, namespace
from biglp._engines import ThreadEngine
from biglp._learn import ANSWERS, FILTERS, METHODS, LearnResult, Method, Predictor
from cli_tools import done, failed
from helpers import blobs, model, rows_in_a_block

pytestmark = pytest.mark.usefixtures("registered")


@dataclass(frozen=True)
class ToyAnswer(Predictor):
    means: np.ndarray

    kind = "toy"

    def outputs(self, features, rows=None, own=None):
        scores = features @ like(features, self.means)
        xp = namespace(scores)
        found = xp.exp(scores - xp.amax(scores, 1)[:, None])
        return found / found.sum(1)[:, None], 0

    def state(self):
        return {"means": self.means}

    @classmethod
    def from_state(cls, state):
        return cls(**state)


class ToyMethod(Method):
    needs = 5 << 20

    @classmethod
    def check(cls, labels, settings, rank):
        super().check(labels, settings, rank)
        if rank > 100:
            raise ParameterError("the toy plays with 100 landmarks at most.")

    @classmethod
    def cost(cls, size):
        return Cost(fixed=cls.needs)

    @classmethod
    def learn(cls, problem):
        sums = problem.sums
        means = sums.targets * (sums.n_rows / sums.counts)
        return LearnResult(ToyAnswer(sums.unmix(means)), {"toy": True})


@pytest.fixture
def registered():
    METHODS["toy"], ANSWERS["toy"] = ToyMethod, ToyAnswer
    FILTERS.append("toy")
    yield
    del METHODS["toy"]
    FILTERS.remove("toy")
    if "toy" in ANSWERS:
        del ANSWERS["toy"]


def toy(**changes):
    return model(filter="toy", alpha="auto", class_balance="auto", **changes)


@pytest.mark.parametrize("factor", ["anchors", "nystrom", "linear"])
def test_it_answers_is_reported_saved_and_loaded(factor, tmp_path):
    X, y, truth = blobs(n=400, spread=0.5)
    X -= X.min(axis=0)
    fitted = toy(factor=factor).fit(X, y)
    assert fitted.report_["toy"]
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1.0)
    if factor != "linear":  # which knows no far and near
        assert (fitted.transduction_ == truth).mean() > 0.9
    with rows_in_a_block(37):
        again = toy(factor=factor, engine=ThreadEngine(3)).fit(X, y)
    np.testing.assert_array_equal(again.transduction_, fitted.transduction_)
    fitted.save(tmp_path / "toy.biglp")
    loaded = type(fitted).load(tmp_path / "toy.biglp")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.save(tmp_path / "rows.npy", X)
    predict = ("predict", tmp_path / "toy.biglp", tmp_path / "rows.npy", "-q")
    done(*predict, "-o", tmp_path / "new.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), fitted.predict(X))
    del ANSWERS["toy"]
    assert "toy" in failed(5, *predict, "-o", tmp_path / "other.npy")


def test_it_may_refuse_before_any_row_is_read_and_the_plan_reckons_with_it(monkeypatch):
    X, y, _ = blobs()
    toy(memory="300MB").fit(X, y)
    monkeypatch.setattr(ToyMethod, "needs", 300 << 20)
    with pytest.raises(MemoryBudgetError):
        toy(memory="300MB").fit(X, y)
    X[0, 0] = np.nan  # which nobody gets to see
    with pytest.raises(ParameterError, match="100 landmarks at most"):
        toy(n_landmarks=150).fit(X, y)
