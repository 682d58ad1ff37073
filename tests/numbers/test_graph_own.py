"""A graph that the user brings: against the dense truth, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import kneighbors_graph

import reference as ref
from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BadRowsError, MemoryBudgetError, ParameterError, UnreachedRowsWarning
from biglp._engines import ThreadEngine
from helpers import blobs, rows_in_a_block


def own(**changes):
    """An estimator for a graph whose every choice is fixed."""
    settings = {"factor": "precomputed", "alpha": 0.9, "class_balance": "none", "engine": "serial"}
    return LowRankLabelPropagation(**{**settings, **changes})


@pytest.fixture
def problem():
    """A k-NN graph, which is not symmetric, with weights and a diagonal; labels and truth."""
    X, y, truth = blobs(n=150)
    A = kneighbors_graph(X, 6, include_self=True).tocsr()
    A.data = np.random.default_rng(0).uniform(0.2, 2.0, A.nnz)
    return A, y, truth


def scores_of(A, Y, alpha=0.9):
    """F of the reference."""
    return ref.closed_form(ref.own_graph(A.toarray())[0], Y, alpha)


def shares(F):
    return F / F.sum(axis=1, keepdims=True)


class TestAgreesWithTheDenseTruth:
    @pytest.mark.parametrize("rows", [7, 64])
    def test_in_any_blocks_on_any_threads(self, problem, rows):
        A, y, _ = problem
        whole = own().fit(A, y)
        with rows_in_a_block(rows):
            found = own(engine=ThreadEngine(3)).fit(A, y)
        np.testing.assert_array_equal(found.label_distributions_, whole.label_distributions_)
        np.testing.assert_array_equal(found.suggest(5), whole.suggest(5))

    def test_class_mass_and_a_given_prior(self, problem):
        A, y, _ = problem
        Y = ref.one_hot(y)
        F = scores_of(A, Y)
        for balance, prior in (("mass", np.full(3, 1 / 3)), ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2])):
            found = own(class_balance=balance).fit(A, y).label_distributions_
            expected = shares(ref.balanced(F, Y, 0.9, prior))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)

    def test_weights_distributions_and_clamping(self, problem):
        A, y, _ = problem
        rng = np.random.default_rng(1)
        known, weights = y >= 0, rng.uniform(0.5, 3.0, len(y))
        Y = np.zeros((len(y), 3))
        Y[known] = rng.dirichlet(np.ones(3), known.sum())
        expected = shares(scores_of(A, Y * weights[:, None]))
        found = own().fit(A, Y, sample_weight=weights)
        np.testing.assert_allclose(found.label_distributions_, expected, rtol=0, atol=1e-8)
        clamped = own(clamp="hard").fit(A, Y, sample_weight=weights)
        np.testing.assert_allclose(clamped.label_distributions_[known], Y[known], atol=1e-12)

    def test_leave_one_out_is_that_of_refitting(self, problem):
        A, y, _ = problem
        fitted = own(class_balance="mass").fit(A, y)
        labels, system = fitted._problem.labels, fitted._problem.system
        labelled = fitted._problem.labelled(labels)
        returned = system.returns(labelled.features, 0.9)
        S, Y = ref.own_graph(A.toarray())[0], ref.one_hot(y)
        K = 0.9 * 0.1 * np.linalg.inv(np.eye(len(S)) - 0.9 * S)
        np.testing.assert_allclose(returned, np.diag(S @ K)[labels.rows], rtol=1e-9)
        brought = labelled.features @ system.towards_all(0.9)
        np.testing.assert_allclose(brought, (S @ K).sum(axis=0)[labels.rows], rtol=1e-9)
        np.testing.assert_allclose(system.coefficients(0.9), K @ Y, rtol=0, atol=1e-13)

    def test_alpha_is_chosen_where_the_graph_is_small(self, problem, monkeypatch):
        A, y, truth = problem
        chosen = own(alpha="auto", class_balance="auto").fit(A, y)
        assert chosen.report_["leave_one_out_accuracy"] > 0.8
        assert len(chosen.report_["candidates"]) == 18
        assert (chosen.transduction_ == truth).mean() > 0.85
        monkeypatch.setattr("biglp._algebra.own_graph.MOST_WORK", 1000)
        large = own(alpha="auto", class_balance="auto").fit(A, y)
        assert large.report_["alpha"] == 0.99
        assert large.report_["candidates"] == []

    def test_poisson_learning(self, problem):
        A, y, _ = problem
        S, d = ref.own_graph(A.toarray())
        Y = ref.one_hot(y)
        u, share = np.sqrt(d / d.sum()), 1.0 - 1e-6
        right = Y - (y >= 0)[:, None] * Y.sum(axis=0) / Y.sum()
        P = np.eye(len(S)) - np.outer(u, u)
        F = P @ np.linalg.solve(np.eye(len(S)) - share * S, P @ right)
        fitted = own(alpha="auto", filter="poisson").fit(A, y)
        expected = ref.probabilities(F, np.full(3, 1 / 3))
        np.testing.assert_allclose(fitted.label_distributions_, expected, rtol=0, atol=1e-8)

    def test_rows_hundreds_of_ties_from_a_label(self):
        # A chain: what is left of a label after 300 ties is far below the error of one solve.
        chain = sparse.diags([np.ones(599)], [1], format="csr")
        y = np.full(600, -1)
        y[[0, 1, 599, 598]] = [0, 0, 1, 1]
        found = own(alpha=0.5).fit(chain, y)
        np.testing.assert_array_equal(found.transduction_, np.arange(600) >= 300)
        assert found.report_["unreached_rows"] == 0

    @pytest.mark.parametrize("alpha", [0.1, 0.9, 0.999])
    def test_in_any_form_by_any_solver(self, problem, alpha):
        A, y, _ = problem
        expected = shares(scores_of(A, ref.one_hot(y), alpha))
        for given in (A, A.tocsc(), A.tocoo(), A.toarray()):
            found = own(alpha=alpha).fit(given, y).label_distributions_
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
        found = own(alpha=alpha, solver="iterative", tol=1e-12).fit(A, y)
        np.testing.assert_allclose(found.label_distributions_, expected, rtol=0, atol=1e-8)

    def test_class_shares(self, problem):
        A, y, _ = problem
        S, d = ref.own_graph(A.toarray())
        Y = ref.one_hot(y)
        found = own(class_balance="share").fit(A, y).label_distributions_
        scores = ref.with_shares(ref.closed_form(S, Y, 0.9), Y, d, 0.9)
        expected = ref.probabilities(scores, np.full(3, 1 / 3))
        unlabelled = y < 0
        assert np.abs(found - expected)[unlabelled].mean() < 0.02  # thresholds are within 0.1 %


class TestParts:
    def test_rows_that_no_label_reaches_have_the_class_prior(self, problem):
        A, y, _ = problem
        lone = sparse.csr_matrix((1, 1))
        pair = sparse.csr_matrix([[0.0, 1.0], [0.0, 0.0]])
        graph = sparse.block_diag([A, lone, pair], format="csr")
        longer = np.concatenate([y, [-1, -1, -1]])
        for method in ("spreading", "poisson"):
            alpha = 0.9 if method == "spreading" else "auto"
            with pytest.warns(UnreachedRowsWarning, match=r"3 of 153 rows"):
                fitted = own(filter=method, alpha=alpha).fit(graph, longer)
            assert fitted.report_["isolated_rows"] == 1
            prior = np.bincount(y[y >= 0]) / (y >= 0).sum()
            np.testing.assert_allclose(fitted.label_distributions_[-3:], np.tile(prior, (3, 1)))
            assert np.isfinite(fitted.label_distributions_).all()

    def test_a_part_takes_its_own_labels(self):
        ring = sparse.csr_matrix(np.roll(np.eye(20), 1, axis=1))
        graph = sparse.block_diag([ring, ring], format="csr")
        y = np.full(40, -1)
        y[[3, 25]] = [0, 1]
        for changes in ({}, {"filter": "poisson", "alpha": "auto"}):
            fitted = own(**changes).fit(graph, y)
            np.testing.assert_array_equal(fitted.transduction_, np.arange(40) >= 20)

    def test_a_labelled_row_without_ties_keeps_its_label(self):
        ring = sparse.csr_matrix(np.roll(np.eye(20), 1, axis=1))
        graph = sparse.block_diag([ring, sparse.csr_matrix((1, 1))], format="csr")
        y = np.full(21, -1)
        y[[3, 8, 20]] = [0, 0, 1]
        fitted = own().fit(graph, y)
        assert fitted.transduction_[20] == 1
        assert fitted.predict(sparse.csr_matrix(np.eye(21)[20:])) == [1]


class TestNewRows:
    def test_training_rows_as_new_ones(self, problem):
        A, y, _ = problem
        W = sparse.csr_matrix(A + A.T)
        W.setdiag(0)
        fitted = own().fit(W, y)
        unlabelled = y < 0
        np.testing.assert_allclose(
            fitted.predict_proba(W)[unlabelled],
            fitted.label_distributions_[unlabelled],
            atol=1e-12,
        )

    def test_saved_and_pickled_models_are_small_and_say_the_same(self, problem, tmp_path):
        A, y, _ = problem
        fitted = own().fit(A, y)
        fitted.save(tmp_path / "own.biglp")
        loaded = LowRankLabelPropagation.load(tmp_path / "own.biglp")
        np.testing.assert_array_equal(loaded.predict_proba(A), fitted.predict_proba(A))
        assert (tmp_path / "own.biglp").stat().st_size < 10_000
        assert len(pickle.dumps(fitted._model)) < len(pickle.dumps(fitted._problem.graph)) / 2

    def test_another_number_of_columns_is_refused(self, problem):
        A, y, _ = problem
        with pytest.raises(ValueError, match=r"149 features, but .* expecting 150"):
            own().fit(A, y).predict(A[:, :149])

    def test_cross_validation_cuts_rows_and_columns(self, problem):
        A, _, truth = problem
        W = sparse.csr_matrix(A + A.T)
        assert cross_val_score(own(class_balance="mass"), W, truth, cv=3).mean() > 0.7


class TestLaterLabels:
    def test_they_are_those_of_a_new_fit(self, problem):
        A, y, truth = problem
        fitted = own().fit(A, y)
        rows = fitted.suggest(6)
        assert (y[rows] == -1).all()
        later = y.copy()
        later[rows] = truth[rows]
        fitted.update_labels(rows, truth[rows])
        fresh = own().fit(A, later)
        np.testing.assert_allclose(
            fitted.label_distributions_, fresh.label_distributions_, atol=1e-12
        )
        fitted.update_labels(rows, np.full(6, -1))
        np.testing.assert_allclose(
            fitted.label_distributions_, own().fit(A, y).label_distributions_, atol=1e-12
        )


class TestRefused:
    def test_what_is_no_graph(self, problem):
        A, y, _ = problem
        negative = A.copy()
        negative.data[7] = -0.25
        bad = A.copy()
        bad.data[7] = np.nan
        for graph, message in (
            (A[:, :20], r"square .* 150 rows and 20 columns"),
            (negative, r"similarities of 0 or more; the entry in row 1, column \d+ is -0.25"),
            (bad, r"NaN or infinity in 1 of 150 rows"),
        ):
            with pytest.raises(BadRowsError, match=message):
                own().fit(graph, y)

    @pytest.mark.parametrize("include_self", [False, True])
    def test_distances_as_scikit_learn_gives_them(self, include_self):
        X, y, _ = blobs(n=60)
        graph = kneighbors_graph(X, 5, mode="distance", include_self=include_self)
        with rows_in_a_block(7), pytest.raises(BadRowsError, match="looks like distances"):
            own().fit(graph, y)
        graph.data = np.exp(-(graph.data**2) / (2 * np.median(graph.data) ** 2))
        own().fit(graph, y)

    def test_settings_that_mean_nothing(self, problem):
        A, y, _ = problem
        with pytest.raises(ParameterError, match="scaling='standard' cannot be used"):
            own(scaling="standard").fit(A, y)
        with pytest.raises(ParameterError, match="no rows to regress on"):
            LowRankLabelPropagationRegressor(factor="precomputed").fit(A, y.astype(float))

    def test_a_graph_that_does_not_fit_the_memory(self, problem):
        A, y, _ = problem
        with pytest.raises(MemoryBudgetError, match=r"Give at least .* or give a graph with fewer"):
            own(memory="120MB").fit(A, y)
