"""A method and its answer from nothing but the base classes and a line each, through the steps.

The method is the nearest class mean in the space of the graph: B/counts are the mean features of
each class. A third line lets ``filter`` offer it.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from biglp._core import ModelFileError, ParameterError
from biglp._core.arrays import like, namespace
from biglp._core.size import Cost, Size
from biglp._engines import SerialEngine, ThreadEngine
from biglp._fit.model import Model
from biglp._fit.pipeline import Pipeline
from biglp._fit.plan import plan_fit
from biglp._labels import encode_labels
from biglp._learn import ANSWERS, FILTERS, METHODS
from biglp._learn.base import LearnResult, Method, Predictor
from biglp._output import ArraySink
from biglp._rows import as_source
from helpers import blobs, model, rows_in_a_block, settings_of

pytestmark = pytest.mark.usefixtures("registered")


@dataclass(frozen=True)
class ToyAnswer(Predictor):
    """Softmax of products with the class means."""

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
    """Nearest class mean on the graph."""

    @classmethod
    def check(cls, labels, settings, rank):
        super().check(labels, settings, rank)
        if rank > 100:
            raise ParameterError("the toy plays with 100 landmarks at most.")

    @classmethod
    def cost(cls, size):
        return Cost(fixed=5 << 20)

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
    del METHODS["toy"], ANSWERS["toy"]
    FILTERS.remove("toy")


def toy_settings(**changes):
    return settings_of(model(filter="toy", **changes))


def fitted(X, y, engine=None, **changes):
    labels = encode_labels(y, len(y))
    sink = ArraySink(labels.classes, len(y), X.dtype)
    found = Pipeline(engine or SerialEngine(), toy_settings(**changes)).fit(
        as_source(X), labels, sink
    )
    return found, sink


@pytest.mark.parametrize("factor", ["anchors", "nystrom", "linear"])
def test_it_answers_and_reports(factor):
    X, y, truth = blobs(n=400, spread=0.5)
    X -= X.min(axis=0)
    found, sink = fitted(X, y, factor=factor)
    assert found.model.report["toy"]
    np.testing.assert_allclose(sink.probabilities.sum(axis=1), 1.0)
    if factor != "linear":  # which knows no far and near
        assert (sink.labels == truth).mean() > 0.9
    with rows_in_a_block(37):
        _, again = fitted(X, y, ThreadEngine(3), factor=factor)
    np.testing.assert_array_equal(again.labels, sink.labels)


def test_its_answer_is_saved_and_loaded(tmp_path):
    X, y, _ = blobs(n=400, spread=0.5)
    found, sink = fitted(X, y)
    found.model.save(tmp_path / "toy.biglp")
    loaded = Model.load(tmp_path / "toy.biglp")
    assert isinstance(loaded.answer, ToyAnswer)
    again = ArraySink(loaded.classes, len(X), X.dtype)
    loaded.graph(SerialEngine(), as_source(X), 1 << 30).answer(loaded.answer, again)
    np.testing.assert_allclose(again.probabilities, sink.probabilities, atol=1e-12)
    registered = ANSWERS["toy"]
    del ANSWERS["toy"]
    with pytest.raises(ModelFileError, match="toy"):
        Model.load(tmp_path / "toy.biglp")
    ANSWERS["toy"] = registered


def test_what_it_refuses_is_refused_before_any_row_is_read():
    X, y, _ = blobs()
    X[0, 0] = np.nan  # which nobody gets to see
    with pytest.raises(ParameterError, match="100 landmarks at most"):
        fitted(X, y, n_landmarks=150)


def test_the_plan_reckons_with_it():
    size = Size(20_000, 100, 3, 500, 100.0, np.dtype(np.float32))
    plain, engine = settings_of(model()), ThreadEngine(2)
    toy = plan_fit(toy_settings(), size, engine)
    assert toy.small - plan_fit(plain, size, engine).small == 5 << 20
