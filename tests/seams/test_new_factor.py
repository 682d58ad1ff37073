"""A factor from nothing but the base class and one line: estimator, model file, command line.

The factor is random Fourier features, cos(ωx + β)·√(2/r), whose products are a Gaussian kernel on
average (Rahimi and Recht, 2007).
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import ModelFileError, ParameterError
from biglp._core.arrays import check_finite, like, namespace, to_dense
from biglp._core.parameters import positive_integer
from biglp._engines import ThreadEngine
from biglp._graph import FACTORS, Factor
from cli_tools import done, failed
from helpers import blobs, rows_in_a_block

pytestmark = [
    pytest.mark.usefixtures("registered"),
    pytest.mark.filterwarnings("ignore::biglp._core.errors.DegreeWarning"),
]
FIT = ("fit", "rows.npy", "--labels", "labels.npy", "--factor", "toy", "-o", "out")


class ToyFactor(Factor):
    """Random Fourier features."""

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
    del FACTORS["toy"]


@pytest.fixture
def problem():
    return blobs(n=400, labelled=30, dtype=np.float32, spread=0.5)


@pytest.fixture
def files(problem, tmp_path, monkeypatch):
    """The problem as files, in the working folder."""
    monkeypatch.chdir(tmp_path)
    X, y, truth = problem
    np.save("rows.npy", X)
    np.save("labels.npy", y)
    return X, y, truth


class TestEstimator:
    def test_it_fits_predicts_and_reports(self, problem):
        X, y, truth = problem
        fitted = LowRankLabelPropagation(factor="toy").fit(X, y)
        assert (fitted.transduction_ == truth).mean() > 0.95
        unlabelled = y < 0
        agree = fitted.predict(X) == fitted.transduction_
        assert agree[unlabelled].all()
        assert fitted.report_["factor"] == "toy"
        assert fitted.report_["rank"] == 50

    def test_its_parameters_are_checked_and_heard(self, problem):
        X, y, _ = problem
        fitted = LowRankLabelPropagation(factor="toy", factor_params={"rank": 80}).fit(X, y)
        assert fitted.report_["rank"] == 80
        for params, message in (
            ({"rank": 0}, r"rank=0 cannot be used; give an integer"),
            ({"n_nearest": 3}, r"'n_nearest', which factor='toy' does not know; allowed: rank"),
        ):
            with pytest.raises(ParameterError, match=message):
                LowRankLabelPropagation(factor="toy", factor_params=params).fit(X, y)

    def test_saved_and_loaded_it_says_the_same(self, problem, tmp_path):
        X, y, _ = problem
        fitted = LowRankLabelPropagation(factor="toy").fit(X, y)
        fitted.save(tmp_path / "toy.biglp")
        loaded = LowRankLabelPropagation.load(tmp_path / "toy.biglp")
        np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
        assert len(set(loaded.suggest(4, X))) == 4
        del FACTORS["toy"]
        with pytest.raises(ModelFileError, match="toy"):
            LowRankLabelPropagation.load(tmp_path / "toy.biglp")
        FACTORS["toy"] = ToyFactor

    def test_it_suggests_and_learns_later_labels(self, problem):
        X, y, truth = problem
        fitted = LowRankLabelPropagation(factor="toy", engine="serial").fit(X, y)
        rows = fitted.suggest(6)
        assert (y[rows] == -1).all()
        assert len(set(rows)) == 6
        fitted.update_labels(rows, truth[rows])
        later = y.copy()
        later[rows] = truth[rows]
        fresh = LowRankLabelPropagation(factor="toy", engine="serial").fit(X, later)
        np.testing.assert_array_equal(fitted.transduction_, fresh.transduction_)

    def test_any_cut_and_any_threads_give_the_same_labels(self, problem):
        X, y, _ = problem
        expected = LowRankLabelPropagation(factor="toy", engine="serial").fit(X, y)
        with rows_in_a_block(37):
            found = LowRankLabelPropagation(factor="toy", engine=ThreadEngine(3)).fit(X, y)
        np.testing.assert_array_equal(found.transduction_, expected.transduction_)

    def test_sparse_rows_and_other_answers(self, problem):
        X, y, truth = problem
        rows = sparse.csr_matrix(np.where(np.abs(X) > 0.3, X, 0))
        for settings in ({"filter": "poisson"}, {"class_balance": "share"}):
            fitted = LowRankLabelPropagation(factor="toy", **settings).fit(rows, y)
            assert (fitted.transduction_ == truth).mean() > 0.9

    @pytest.mark.filterwarnings("ignore::biglp._core.errors.UnreachedRowsWarning")
    def test_the_regressor_takes_it(self, problem):
        X, _, truth = problem
        y = np.where(np.arange(len(X)) < 60, truth, np.nan)
        fitted = LowRankLabelPropagationRegressor(factor="toy").fit(X, y)
        assert np.abs(fitted.transduction_ - truth).mean() < 0.5 * truth.std()
        assert fitted.report_["factor"] == "toy"

    def test_rows_that_are_not_numbers_are_explained(self, problem):
        X, y, _ = problem
        X[17, 1] = np.nan
        with pytest.raises(ValueError, match=r"NaN or infinity in 1 of 400 rows .*rows 17"):
            LowRankLabelPropagation(factor="toy").fit(X, y)


class TestCommandLine:
    def test_fit_predict_and_suggest(self, files):
        X, y, truth = files
        done(*FIT, "-q")
        summary = json.loads(Path("out/summary.json").read_text())
        assert summary["settings"]["factor"] == "toy"
        assert summary["settings"]["rank"] == 50
        labels = np.load("out/labels.npy")
        expected = LowRankLabelPropagation(factor="toy").fit(X, y)
        np.testing.assert_array_equal(labels, expected.transduction_)
        assert (labels == truth).mean() > 0.95
        done("predict", "out/model.biglp", "rows.npy", "-o", "new.npy", "-q")
        np.testing.assert_array_equal(np.load("new.npy"), expected.predict(X))
        assert len(done("suggest", "out", "-n", "5").stdout.splitlines()) >= 5

    def test_a_dry_run_plans_it(self, files):
        planned = done(*FIT, "--dry-run").stdout
        assert "toy" in planned
        assert "400 rows" in planned.replace("\xa0", " ")

    def test_a_small_budget_is_refused_in_its_words(self, files):
        message = failed(4, *FIT, "--memory", "20MB")
        assert "factor='toy'" in message or "--factor toy" in message
        assert "use fewer features" in message

    def test_without_its_line_it_is_not_known(self, files):
        del FACTORS["toy"]
        message = failed(2, *FIT)
        FACTORS["toy"] = ToyFactor
        assert "'toy' is not known; use one of auto, anchors, nystrom" in message
