"""A factor from nothing but the base class and one line: estimator, model file, command line.

The factor is random Fourier features, cos(ωx + β)·√(2/r), whose products are a Gaussian kernel on
average (Rahimi and Recht, 2007).
"""

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import (
    ModelFileError,
    ParameterError,
    check_finite,
    like,
    namespace,
    positive_integer,
    to_dense,
)
from biglp._engines import ThreadEngine
from biglp._graph import FACTORS, Factor
from helpers import blobs, rows_in_a_block

pytestmark = [
    pytest.mark.usefixtures("registered"),
    pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning"),
]


class ToyFactor(Factor):
    kind = "toy"
    params = {"rank": positive_integer}  # noqa: RUF012
    n_landmarks_counts = False

    def __init__(self, frequencies, phases):
        self.frequencies, self.phases = frequencies, phases
        self.rank = len(phases)

    @classmethod
    def rank_for(cls, settings, n_rows, n_features):
        return settings.factor_params.get("rank", 50)

    @classmethod
    def fit(cls, rows, settings):
        rank = cls.rank_for(settings, rows.source.n_rows, rows.source.n_features)
        rng = np.random.default_rng(rows.sample.seed)
        width = settings.bandwidth or to_dense(rows.sample.prepared(1000)).std()
        frequencies = rng.normal(size=(rows.source.n_features, rank)) / width
        return cls(frequencies, rng.uniform(0, 2 * np.pi, rank))

    def features(self, rows):
        angles = rows @ like(rows, self.frequencies)
        check_finite(angles)
        angles = angles + like(angles, self.phases)
        return namespace(angles).cos(angles) * (2.0 / self.rank) ** 0.5

    def state(self):
        return {"frequencies": self.frequencies, "phases": self.phases}

    @classmethod
    def from_state(cls, state):
        return cls(**state)


@pytest.fixture
def registered():
    FACTORS["toy"] = ToyFactor
    yield
    if "toy" in FACTORS:
        del FACTORS["toy"]


@pytest.fixture
def problem():
    return blobs(n=400, labelled=30, dtype=np.float32, spread=0.5)


def fitted(X, y, **changes):
    return LowRankLabelPropagation(**{"factor": "toy", "engine": "serial", **changes}).fit(X, y)


def test_it_fits_predicts_suggests_and_learns_later_labels_in_any_cut(problem):
    X, y, truth = problem
    found = fitted(X, y)
    assert (found.transduction_ == truth).mean() > 0.95
    assert (found.predict(X) == found.transduction_)[y < 0].all()
    assert (found.report_["factor"], found.report_["rank"]) == ("toy", 50)
    with rows_in_a_block(37):
        again = fitted(X, y, engine=ThreadEngine(3))
    np.testing.assert_array_equal(again.transduction_, found.transduction_)
    rows = found.suggest(6)
    assert (y[rows] == -1).all()
    assert len(set(rows)) == 6
    found.update_labels(rows, truth[rows])
    later = y.copy()
    later[rows] = truth[rows]
    np.testing.assert_array_equal(found.transduction_, fitted(X, later).transduction_)


def test_its_parameters_are_heard_and_what_it_cannot_use_is_explained(problem):
    X, y, _ = problem
    assert fitted(X, y, factor_params={"rank": 80}).report_["rank"] == 80
    for params, message in (
        ({"rank": 0}, r"rank=0 cannot be used; give an integer"),
        ({"n_nearest": 3}, r"'n_nearest', which factor='toy' does not know; allowed: rank"),
    ):
        with pytest.raises(ParameterError, match=message):
            fitted(X, y, factor_params=params)
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in 1 of 400 rows .*rows 17"):
        fitted(X, y)


def test_saved_and_loaded_it_says_the_same(problem, tmp_path):
    X, y, _ = problem
    found = fitted(X, y)
    found.save(tmp_path / "toy.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "toy.biglp")
    np.testing.assert_array_equal(loaded.predict_proba(X), found.predict_proba(X))
    assert len(set(loaded.suggest(4, X))) == 4
    del FACTORS["toy"]
    with pytest.raises(ModelFileError, match="toy"):
        LowRankLabelPropagation.load(tmp_path / "toy.biglp")
