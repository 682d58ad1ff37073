"""What the classifier answers: accuracy, probabilities, unreached rows, balance, seeds."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons

from biglp import LowRankLabelPropagation
from biglp._core.errors import (
    StoppedShortWarning,
    UnreachedRowsWarning,
)
from helpers import blobs, model

FACTORS = ("anchors", "nystrom", "linear", "glnp")


class TestAnswers:
    def test_digits_with_a_hundred_labels(self, digits):
        X, y, truth = digits
        fitted = LowRankLabelPropagation().fit(X, y)
        unlabelled = y == -1
        assert (fitted.transduction_ == truth)[unlabelled].mean() > 0.93
        assert fitted.classes_.tolist() == list(range(10))
        assert fitted.label_distributions_.shape == (1797, 10)
        assert fitted.n_features_in_ == 64
        assert fitted.n_iter_ == 1

    def test_two_moons_with_one_label_each(self):
        X, truth = make_moons(400, noise=0.05, random_state=0)
        y = np.full(400, -1)
        y[[np.flatnonzero(truth == 0)[0], np.flatnonzero(truth == 1)[0]]] = [0, 1]
        fitted = LowRankLabelPropagation().fit(X, y)
        assert (fitted.transduction_ == truth).mean() > 0.97

    @pytest.mark.parametrize("factor", FACTORS)
    def test_prediction_of_training_rows_is_the_transduction(self, factor):
        X, y, _ = blobs(n=400)
        X = np.abs(X)  # so that GLNP need not shift
        params = {"max_iter": 500, "tol": 1e-6} if factor == "glnp" else None
        fitted = model(factor=factor, n_landmarks=8, factor_params=params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedShortWarning)
            fitted.fit(X, y)
        unlabelled = y == -1
        agree = fitted.predict(X)[unlabelled] == fitted.transduction_[unlabelled]
        if factor == "glnp":  # the iterate is close to, not at, the minimum of each row
            assert agree.mean() > 0.9
            return
        assert agree.all()
        np.testing.assert_allclose(
            fitted.predict_proba(X)[unlabelled],
            fitted.label_distributions_[unlabelled],
            atol=1e-9,
        )

    @pytest.mark.parametrize("factor", FACTORS)
    def test_csr_rows_give_what_dense_rows_give(self, factor):
        X, y, _ = blobs(n=300)
        X = np.where(X > 0.5, X, 0.0)
        X[:, 0] += 0.1  # no row is empty
        dense = model(factor=factor, n_landmarks=10).fit(X, y)
        from_csr = model(factor=factor, n_landmarks=10).fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(
            from_csr.label_distributions_, dense.label_distributions_, atol=1e-6
        )
        np.testing.assert_allclose(
            from_csr.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-6
        )

    @pytest.mark.parametrize("layout", ["csc_matrix", "coo_array", "csr_array"])
    def test_other_sparse_layouts(self, layout):
        X, y, _ = blobs()
        expected = model().fit(sparse.csr_matrix(X), y).label_distributions_
        found = model().fit(getattr(sparse, layout)(X), y).label_distributions_
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("factor", FACTORS)
    @pytest.mark.parametrize("solver", ["closed_form", "iterative"])
    def test_probabilities_add_up_to_one(self, factor, solver):
        X, y, _ = blobs(dtype="float32")
        fitted = model(factor=factor, n_landmarks=10, solver=solver).fit(X, y)
        for probabilities in (fitted.label_distributions_, fitted.predict_proba(X + 3)):
            assert np.isfinite(probabilities).all()
            assert probabilities.min() >= 0
            np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)

    def test_both_solvers_agree_and_the_iterative_one_counts(self):
        X, y, _ = blobs()
        exact = model().fit(X, y)
        iterated = model(solver="iterative", tol=1e-10).fit(X, y)
        np.testing.assert_allclose(
            iterated.label_distributions_, exact.label_distributions_, atol=1e-8
        )
        assert iterated.n_iter_ > 10
        with pytest.warns(StoppedShortWarning, match="max_iter=3") as caught:
            short = model(solver="iterative", max_iter=3).fit(X, y)
        assert short.n_iter_ == 3
        assert len(caught) == 1

    def test_nystrom_of_few_rows_chooses_a_sensible_bandwidth(self):
        # Every row is its own landmark: the distance to the nearest one is zero or rounding.
        for dtype in ("float32", "float64"):
            X, y, truth = blobs(n=45, labelled=12, dtype=dtype, spread=0.5)
            fitted = LowRankLabelPropagation(factor="nystrom").fit(X, y)
            assert (fitted.transduction_ == truth).mean() > 0.9

    @pytest.mark.parametrize("alpha", [0.5, 0.99])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("factor", ["anchors", "nystrom"])
    def test_unreached_rows_get_the_prior_and_are_counted(self, factor, dtype, alpha):
        # Two islands of 30 rows without a label: rounding must not look like labels there.
        X, y, _ = blobs(n=300, classes=2)
        X[240:] += 200.0
        X[270:, 1] += 300.0
        y[240:] = -1
        prior = [0.3, 0.7]
        estimator = model(
            factor=factor, alpha=alpha, bandwidth=1.0, class_balance=prior, n_landmarks=50
        )
        with pytest.warns(
            UnreachedRowsWarning, match=r"60 of 300 rows .* got the class prior\. Label"
        ):
            fitted = estimator.fit(X.astype(dtype), y)
        assert fitted.report_["unreached_rows"] == 60
        np.testing.assert_allclose(fitted.label_distributions_[240:], [prior] * 60, rtol=1e-6)
        np.testing.assert_allclose(fitted.predict_proba(X[240:]), [prior] * 60, rtol=1e-6)
        assert (np.abs(fitted.label_distributions_[:240] - prior).max(axis=1) > 1e-3).mean() > 0.9

    def test_new_rows_that_nothing_reaches_get_the_prior(self):
        X, y, _ = blobs(classes=2)
        fitted = model(factor="nystrom", class_balance=[0.3, 0.7]).fit(X, y)
        np.testing.assert_allclose(fitted.predict_proba([[-1e5] * 5]), [[0.3, 0.7]])

    def test_a_label_reaches_the_end_of_a_long_chain(self):
        # Each landmark further on has a thousandth of the score: small, but no rounding error.
        X = np.repeat(np.arange(9.0), 20)[:, None]
        y = np.full(180, -1)
        y[[0, 1, 160]] = [0, 0, 1]
        landmarks = np.arange(9.0)[:, None]
        fitted = model(landmarks=landmarks, bandwidth=0.35, alpha=0.3, class_balance="none")
        fitted.fit(X, y)
        assert fitted.report_["unreached_rows"] == 0
        assert fitted.transduction_[:80].tolist() == [0] * 80
        assert fitted.transduction_[100:].tolist() == [1] * 80

    def test_class_balance_saves_the_minority(self):
        """scikit-learn issues #7276 and #21783: everything becomes the majority class."""
        rng = np.random.default_rng(0)
        truth = (np.arange(1000) % 20 == 0).astype(int)
        X = rng.normal(size=(1000, 4)) + 2.5 * truth[:, None]
        y = np.where(rng.random(1000) < 0.3, truth, -1)
        unlabelled = y == -1

        def minority_recall(balance):
            fitted = model(alpha=0.99, class_balance=balance).fit(X, y)
            return (fitted.transduction_ == 1)[unlabelled & (truth == 1)].mean()

        assert minority_recall("none") < 0.3
        assert minority_recall("mass") > 0.9

    def test_automatic_choices_are_reported(self, digits):
        X, y, _ = digits
        report = LowRankLabelPropagation(factor="anchors").fit(X, y).report_
        assert 0 < report["alpha"] < 1
        assert report["bandwidth"] > 0
        assert 0.8 < report["leave_one_out_accuracy"] <= 1
        best = max(candidate["accuracy"] for candidate in report["candidates"])
        assert report["leave_one_out_accuracy"] == best
        assert (report["rows"], report["labelled_rows"]) == (1797, 100)
        json.dumps(report)  # it is stored in the model file

    def test_the_seed_alone_decides(self):
        X, y, _ = blobs(n=300)
        one = model(random_state=1).fit(X, y).label_distributions_
        np.testing.assert_array_equal(model(random_state=1).fit(X, y).label_distributions_, one)
        assert not np.array_equal(model(random_state=2).fit(X, y).label_distributions_, one)
        for same in (None, 0):
            np.testing.assert_array_equal(
                model(random_state=same).fit(X, y).label_distributions_,
                model().fit(X, y).label_distributions_,
            )
        for generator in (np.random.RandomState(3), np.random.default_rng(3)):
            model(random_state=generator).fit(X, y)
