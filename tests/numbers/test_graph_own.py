"""A graph that the user brings: against the dense truth, and what is refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

import reference as ref
from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BadRowsError, MemoryBudgetError, ParameterError, UnreachedRowsWarning
from biglp._engines import ThreadEngine
from helpers import blobs, rows_in_a_block


def own(**changes):
    settings = {"factor": "precomputed", "alpha": 0.9, "class_balance": "none", "engine": "serial"}
    return LowRankLabelPropagation(**{**settings, **changes})


@pytest.fixture
def problem():
    X, y, truth = blobs(n=150)
    A = kneighbors_graph(X, 6, include_self=True).tocsr()
    A.data = np.random.default_rng(0).uniform(0.2, 2.0, A.nnz)
    return A, y, truth


def scores_of(A, Y, alpha=0.9):
    return ref.closed_form(ref.own_graph(A.toarray())[0], Y, alpha)


def assert_shares(fitted, F, atol=1e-8):
    expected = F / F.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.label_distributions_, expected, rtol=0, atol=atol)


class TestAgreesWithTheDenseTruth:
    @pytest.mark.parametrize("alpha", [0.1, 0.9, 0.999])
    def test_in_any_form_by_any_solver_in_any_blocks(self, problem, alpha):
        A, y, _ = problem
        F = scores_of(A, ref.one_hot(y), alpha)
        for given in (A, A.tocsc(), A.tocoo(), A.toarray()):
            assert_shares(own(alpha=alpha).fit(given, y), F)
        assert_shares(own(alpha=alpha, solver="iterative", tol=1e-12).fit(A, y), F)
        whole = own(alpha=alpha).fit(A, y)
        with rows_in_a_block(7):
            found = own(alpha=alpha, engine=ThreadEngine(3)).fit(A, y)
        np.testing.assert_array_equal(found.label_distributions_, whole.label_distributions_)
        np.testing.assert_array_equal(found.suggest(5), whole.suggest(5))

    def test_with_priors_weights_distributions_and_clamping(self, problem):
        A, y, _ = problem
        Y = ref.one_hot(y)
        for balance, prior in (("mass", np.full(3, 1 / 3)), ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2])):
            F = ref.balanced(scores_of(A, Y), Y, 0.9, prior)
            assert_shares(own(class_balance=balance).fit(A, y), F)
        rng = np.random.default_rng(1)
        known, weights = y >= 0, rng.uniform(0.5, 3.0, len(y))
        Y[known] = rng.dirichlet(np.ones(3), known.sum())
        found = own().fit(A, Y, sample_weight=weights)
        assert_shares(found, scores_of(A, Y * weights[:, None]))
        clamped = own(clamp="hard").fit(A, Y, sample_weight=weights)
        np.testing.assert_allclose(clamped.label_distributions_[known], Y[known], atol=1e-12)

    def test_by_class_shares_and_poisson_learning(self, problem):
        A, y, _ = problem
        S, d = ref.own_graph(A.toarray())
        Y, even = ref.one_hot(y), np.full(3, 1 / 3)
        found = own(class_balance="share").fit(A, y).label_distributions_
        scores = ref.with_shares(ref.closed_form(S, Y, 0.9), Y, d, 0.9)
        far = np.abs(found - ref.probabilities(scores, even))[y < 0]
        assert far.mean() < 0.02  # thresholds are within 0.1 %
        u = np.sqrt(d / d.sum())
        P = np.eye(len(S)) - np.outer(u, u)
        right = P @ ref.centred_labels(Y)
        F = P @ np.linalg.solve(np.eye(len(S)) - (1.0 - 1e-6) * S, right)
        fitted = own(alpha="auto", filter="poisson").fit(A, y)
        expected = ref.probabilities(F, even)
        np.testing.assert_allclose(fitted.label_distributions_, expected, rtol=0, atol=1e-8)

    def test_rows_hundreds_of_ties_from_a_label(self):
        # A chain: what is left of a label after 300 ties is far below the error of one solve.
        chain = sparse.diags([np.ones(599)], [1], format="csr")
        y = np.full(600, -1)
        y[[0, 1, 599, 598]] = [0, 0, 1, 1]
        found = own(alpha=0.5).fit(chain, y)
        np.testing.assert_array_equal(found.transduction_, np.arange(600) >= 300)
        assert found.report_["unreached_rows"] == 0


@pytest.mark.parametrize("method", [{}, {"filter": "poisson", "alpha": "auto"}])
def test_parts_take_their_own_labels_and_those_without_one_the_prior(problem, method):
    A, y, _ = problem
    pair = sparse.csr_matrix([[0.0, 1.0], [0.0, 0.0]])
    graph = sparse.block_diag([A, sparse.csr_matrix((1, 1)), pair], format="csr")
    with pytest.warns(UnreachedRowsWarning, match=r"3 of 153 rows"):
        fitted = own(**method).fit(graph, np.concatenate([y, [-1, -1, -1]]))
    assert fitted.report_["isolated_rows"] == 1
    prior = np.bincount(y[y >= 0]) / (y >= 0).sum()
    np.testing.assert_allclose(fitted.label_distributions_[-3:], np.tile(prior, (3, 1)))
    assert np.isfinite(fitted.label_distributions_).all()
    ring = sparse.csr_matrix(np.roll(np.eye(20), 1, axis=1))
    labels = np.full(40, -1)
    labels[[3, 25]] = [0, 1]
    fitted = own(**method).fit(sparse.block_diag([ring, ring], format="csr"), labels)
    np.testing.assert_array_equal(fitted.transduction_, np.arange(40) >= 20)


def test_new_rows_later_labels_and_saved_models(problem, tmp_path):
    A, y, truth = problem
    W = sparse.csr_matrix(A + A.T)
    W.setdiag(0)
    fitted = own().fit(W, y)
    found, expected = fitted.predict_proba(W), fitted.label_distributions_
    np.testing.assert_allclose(found[y < 0], expected[y < 0], atol=1e-12)
    with pytest.raises(ValueError, match=r"149 features, but .* expecting 150"):
        fitted.predict(W[:, :149])
    fitted.save(tmp_path / "own.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "own.biglp")
    np.testing.assert_array_equal(loaded.predict_proba(W), found)
    assert (tmp_path / "own.biglp").stat().st_size < 10_000
    rows = fitted.suggest(6)
    assert (y[rows] == -1).all()
    later = y.copy()
    later[rows] = truth[rows]
    for labels, now in ((truth[rows], later), (np.full(6, -1), y)):
        fitted.update_labels(rows, labels)
        fresh = own().fit(W, now).label_distributions_
        np.testing.assert_allclose(fitted.label_distributions_, fresh, atol=1e-12)


def test_what_cannot_be_used_is_refused(problem):
    A, y, _ = problem
    negative, bad = A.copy(), A.copy()
    negative.data[7], bad.data[7] = -0.25, np.nan
    far = kneighbors_graph(blobs(n=150)[0], 5, mode="distance")
    for graph, settings, error, message in (
        (A[:, :20], {}, BadRowsError, r"square .* 150 rows and 20 columns"),
        (negative, {}, BadRowsError, r"0 or more; the entry in row 1, column \d+ is -0.25"),
        (bad, {}, BadRowsError, r"NaN or infinity in 1 of 150 rows"),
        (far, {}, BadRowsError, "looks like distances"),
        (A, {"scaling": "standard"}, ParameterError, "scaling='standard' cannot be used"),
        (A, {"memory": "120MB"}, MemoryBudgetError, r"Give at least .* or give a graph with fewer"),
    ):
        with rows_in_a_block(7), pytest.raises(error, match=message):
            own(**settings).fit(graph, y)
    with pytest.raises(ParameterError, match="no rows to regress on"):
        LowRankLabelPropagationRegressor(factor="precomputed").fit(A, y.astype(float))
