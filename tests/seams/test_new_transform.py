"""A new embedder of rows is one class and one line: asked for, reported, saved and loaded.

The classes lie in stripes along one feature, which no distance shows; the waves that the transform
adds make them two clusters.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core import ModelFileError, ParameterError, like, namespace
from biglp._transforms import TRANSFORMS, RowTransform
from helpers import rows_in_a_block
from made_tables import articles, some_labels

pytestmark = pytest.mark.usefixtures("_toy")


@dataclass(frozen=True)
class Waves(RowTransform):
    name: ClassVar[str] = "waves"
    frequency: np.ndarray | None = None

    def fit(self, sample, size=None):
        assert size.n_rows >= sample.shape[0]
        return replace(self, frequency=np.full(sample.shape[1], 40.0))

    def apply(self, rows):
        rows = rows.toarray() if sparse.issparse(rows) else rows
        angles, xp = rows * like(rows, self.frequency), namespace(rows)
        return xp.hstack([xp.sin(angles), xp.cos(angles)])

    def width(self, n_features):
        return 2 * n_features

    def state(self):
        return {"frequency": self.frequency}

    @classmethod
    def from_state(cls, state):
        return cls(state["frequency"])

    def describe(self):
        return {"waves": len(self.frequency)}


@pytest.fixture
def _toy():
    TRANSFORMS["waves"] = Waves
    yield
    TRANSFORMS.pop("waves", None)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(900, 1)).astype(np.float32)
    truth = (np.sin(40.0 * X[:, 0]) > 0).astype(int)
    return X, np.where(np.arange(900) < 60, truth, -1), truth


def estimator(**changes):
    return LowRankLabelPropagation(scaling="none", **{"projection": "waves", **changes})


def test_the_graph_is_one_of_embedded_rows_in_any_form_and_cut(problem):
    X, y, truth = problem
    fitted = estimator().fit(X, y)
    assert fitted.report_["waves"] == 1
    assert (fitted.transduction_ == truth).mean() > 0.93
    assert (estimator(projection="none").fit(X, y).transduction_ == truth).mean() < 0.8
    with rows_in_a_block(61):
        cut = estimator().fit(X, y)
    thin = estimator().fit(sparse.csr_matrix(X), y)
    for found in (cut, thin):
        np.testing.assert_array_equal(found.transduction_, fitted.transduction_)
    frame, topic = articles()  # after words beside a table
    model = LowRankLabelPropagation(text=["text"], projection="waves")
    report = model.fit(frame, some_labels(topic, 40)).report_
    assert (report["scaling"], report["waves"]) == ("mixed", 4 + 64)
    pytest.importorskip("torch")
    fitted = estimator(device="torch:cpu").fit(X, y)
    assert (fitted.transduction_ == truth).mean() > 0.93


@pytest.mark.parametrize("options", [{}, {"factor": "nystrom"}, {"missing": "mean"}])
def test_saved_and_loaded_it_says_the_same(problem, tmp_path, options):
    X, y, _ = problem
    if options.get("missing"):
        X[5, 0] = np.nan
    fitted = estimator(**options).fit(X, y)
    fitted.save(tmp_path / "model")
    loaded = LowRankLabelPropagation.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    del TRANSFORMS["waves"]
    with pytest.raises(ModelFileError, match="waves"):
        LowRankLabelPropagation.load(tmp_path / "model")


def test_names_that_can_be_asked_for(problem):
    X, y, _ = problem
    with pytest.raises(ParameterError, match=r"'auto', 'waves', 'none' or a number"):
        estimator(projection="wave").fit(X, y)
    with pytest.raises(ParameterError, match="projection='scale' cannot be used"):
        estimator(projection="scale").fit(X, y)
    with pytest.raises(ParameterError, match="projection='waves' cannot be used with factor='prec"):
        estimator(factor="precomputed").fit(np.eye(900), y)
