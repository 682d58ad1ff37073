"""Every factor and solver gives the dense n × n answer, for any cut, threads and order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from biglp._core import DegreeWarning, to_dense
from biglp._engines import ThreadEngine
from biglp._labels import OwnLabels
from biglp._learn import SpreadingPredictor
from helpers import (
    assert_scores_agree,
    blobs,
    clear_rows,
    landmarks_of,
    model,
    raw_scores,
    reference_graph,
    rows_in_a_block,
)
from strategies import problems

TOLERANCE = {"float32": 1e-5, "float64": 1e-9}


FACTORS = ("anchors", "nystrom", "linear")


def reference_scores(factor, X, y, L, alpha, solve=ref.closed_form, prior=None, **shape):
    S = ref.normalised_graph(reference_graph(factor, X, L, **shape))
    Y = ref.one_hot(y)
    F = solve(S, Y, alpha)
    return F if prior is None else ref.balanced(F, Y, alpha, prior)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.01, 0.9, 0.99])
@pytest.mark.parametrize("solver", ["closed_form", "iterative"])
@pytest.mark.parametrize("factor", FACTORS)
def test_scores_agree_with_the_dense_reference(factor, solver, alpha, dtype):
    X, y, _ = blobs(dtype=dtype)
    L = landmarks_of(X)
    fitted = model(factor=factor, landmarks=L, alpha=alpha, solver=solver, tol=1e-12).fit(X, y)
    solve = ref.closed_form if solver == "closed_form" else ref.iterative
    expected = reference_scores(factor, X, y, L, alpha, solve, prior=np.full(3, 1 / 3))
    found = raw_scores(fitted, X, y)
    # Apart, because at a small α unlabelled rows have a thousandth of a labelled row's score.
    for part in (y < 0, y >= 0):
        assert_scores_agree(found[part], expected[part], TOLERANCE[dtype])


@pytest.mark.parametrize("factor", FACTORS)
def test_sparse_rows_and_any_size_of_block_agree(factor):
    X, y, _ = blobs(dtype="float32")
    sparse_rows = np.where(np.abs(X) > 0.7, X, 0).astype("float32")
    for some, dense, rows in (
        (X, X, 1),
        (X, X, 64),
        (sparse.csr_matrix(sparse_rows), sparse_rows, 7),
    ):
        L = landmarks_of(dense)
        with rows_in_a_block(rows):
            fitted = model(factor=factor, landmarks=L, engine="threads").fit(some, y)
        expected = reference_scores(factor, dense, y, L, 0.9, prior=np.full(3, 1 / 3))
        assert_scores_agree(raw_scores(fitted, some, y), expected)


@pytest.mark.parametrize("offset", [100.0, 1e4])
@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
def test_rows_far_from_the_origin_keep_their_digits(factor, offset):
    # ‖x‖² − 2x·l + ‖l‖² in float32 would lose them: this was wrong by 1 % at an offset of 90.
    X, y, _ = blobs(dtype="float32")
    X += np.float32(offset)
    L = landmarks_of(X)
    fitted = model(factor=factor, landmarks=L).fit(X, y)
    expected = reference_scores(factor, X, y, L, 0.9, prior=np.full(3, 1 / 3))
    assert_scores_agree(raw_scores(fitted, X, y), expected)


@pytest.mark.parametrize("sigma", [0.3, 0.7, 4.0, 12.0])
def test_nystrom_agrees_from_narrow_to_wide_kernels(sigma):
    # Narrow kernels take the path that mixes sums, wide ones lose eigenvalues to the cut-off.
    X, y, _ = blobs()
    L = landmarks_of(X, 40)
    fitted = model(factor="nystrom", landmarks=L, bandwidth=sigma).fit(X, y)
    expected = reference_scores("nystrom", X, y, L, 0.9, prior=np.full(3, 1 / 3), sigma=sigma)
    np.testing.assert_allclose(raw_scores(fitted, X, y), expected, atol=1e-7 * expected.max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_repaired_degrees_agree_and_are_counted(dtype):
    # Rows to the left of both landmarks have a negative Nyström similarity to those on the right.
    rng = np.random.default_rng(0)
    centres = np.repeat([-2.0, 0.5, 3.0], [6, 20, 150])
    X = (centres + 0.1 * rng.normal(size=176))[:, None].astype(dtype)
    y = np.full(176, -1)
    y[[0, 1, 8, 30, 31, 32]] = [0, 0, 0, 1, 1, 1]
    L = np.array([[0.0], [1.0]], dtype=dtype)
    W = reference_graph("nystrom", X, L, sigma=1.0)
    assert (W.sum(axis=1)[:6] < 0).all()
    assert ref.repaired_degrees(W)[1] == 6
    with pytest.warns(DegreeWarning, match=r"6 of 176 rows .*n_landmarks=2 now"):
        fitted = model(factor="nystrom", landmarks=L, bandwidth=1.0).fit(X, y)
    assert fitted.report_["repaired_rows"] == 6
    assert fitted.report_["spectral_radius"] > 1
    expected = reference_scores("nystrom", X, y, L, 0.9, prior=np.full(2, 1 / 2), sigma=1.0)
    assert_scores_agree(raw_scores(fitted, X, y), expected, TOLERANCE[dtype])


@pytest.mark.parametrize("factor", FACTORS)
def test_new_rows_are_scored_as_if_they_had_been_there(factor):
    """A new row's scores come from its features alone: those of a training row are its own."""
    X, y, _ = blobs()
    L = landmarks_of(X)
    fitted = model(factor=factor, landmarks=L).fit(X, y)
    expected = reference_scores(factor, X, y, L, 0.9, prior=np.full(3, 1 / 3))
    unlabelled = y < 0
    found = fitted.predict_proba(X[unlabelled])
    np.testing.assert_allclose(found, ref.probabilities(expected, 0)[unlabelled], atol=1e-9)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", ["closed_form", "iterative"])
@pytest.mark.parametrize("factor", ["glnp", "glnp-mu"])
def test_glnp_propagates_on_the_graph_that_it_learnt(factor, solver, dtype):
    """F is what GLNP learns, so the reference takes F as given: W = FFᵀ."""
    X, y, _ = blobs(dtype=dtype)
    with rows_in_a_block(64):
        fitted = model(factor=factor, n_landmarks=8, solver=solver, tol=1e-12).fit(X, y)
    graph = fitted._problem.graph
    learnt = [to_dense(graph.factor.block_features(block)) for block in graph.blocks]
    F = np.concatenate(learnt).astype(np.float64)
    assert F.shape == (200, fitted.report_["rank"])
    S, Y = ref.normalised_graph(F @ F.T), ref.one_hot(y)
    scores = ref.balanced(ref.closed_form(S, Y, 0.9), Y, 0.9, np.full(3, 1 / 3))
    expected = ref.probabilities(scores, np.full(3, 1 / 3))
    tolerance = 1e-4 if dtype == "float32" else 1e-8
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=tolerance)
    clear = clear_rows(expected, 2 * tolerance)
    np.testing.assert_array_equal(fitted.transduction_[clear], expected.argmax(axis=1)[clear])


def test_the_linear_kernel_without_a_shift():
    X, y, _ = blobs(spread=0.5)
    X = X + 1.0  # far enough from zero that every degree is positive
    fitted = model(factor="linear", factor_params={"shift": False}, class_balance="none").fit(X, y)
    S = ref.normalised_graph(X @ X.T)
    expected = ref.closed_form(S, ref.one_hot(y), 0.9)
    assert fitted.report_["repaired_rows"] == 0
    assert_scores_agree(raw_scores(fitted, X, y), expected, 1e-9)


@pytest.mark.parametrize("factor", ["anchors", "linear"])
def test_centred_labels_spread_as_in_the_dense_reference(factor):
    X, y, _ = blobs(labelled=25)
    L = landmarks_of(X)
    fitted = model(factor=factor, landmarks=L, class_balance="centre").fit(X, y)
    Y, W = ref.one_hot(y), reference_graph(factor, X, L)
    scores = ref.closed_form(ref.normalised_graph(W), ref.centred_labels(Y), 0.9)
    expected = ref.probabilities(scores, Y.sum(axis=0) / Y.sum())
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-8)
    np.testing.assert_allclose(
        raw_scores(fitted, X)[y < 0], scores[y < 0], atol=1e-9 * np.abs(scores).max()
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_add_up_to_one_and_unreached_rows_get_the_prior(dtype):
    prior = np.array([0.2, 0.3, 0.5])
    answer = SpreadingPredictor(np.eye(3), np.array([10.0, 20.0, 30.0]), prior)
    features = np.array([[1, 1, 2], [0, 0, 0], [-1, -2, -3], [-1, 3, 1], [0, 0, 0]], dtype=dtype)
    own = OwnLabels(np.array([4]), np.array([[0.0, 1.0, 0.0]]), np.ones(1))
    found, n_unreached = answer.outputs(features, own=own)
    expected = [[0.25, 0.25, 0.5], prior, [2 / 3, 1 / 3, 0], [0, 0.75, 0.25], [0, 1, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert n_unreached == 1
    assert found.dtype == dtype


@pytest.mark.parametrize("size", [1e-38, 1e-42, 1e-30, 1e30])
def test_probabilities_of_tiny_and_huge_scores_are_never_nan(size):
    answer = SpreadingPredictor(np.eye(2), np.ones(2), np.array([0.5, 0.5]))
    found, _ = answer.outputs(np.array([[size, 3 * size]], dtype=np.float32))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)


# --------------------------------------------------------------------------------------------------
# Any cut into blocks, any threads, any order of rows.


PARAMS = {"glnp": {"factor_params": {"max_iter": 15, "tol": 0.0}}}


def fitted(factor, X, y, **changes):
    # Given landmarks: which rows k-means samples is not the question here.
    landmarks = changes.pop("landmarks", X[:8])
    estimator = model(factor=factor, landmarks=landmarks, n_landmarks=8, **PARAMS.get(factor, {}))
    return estimator.set_params(**changes).fit(X, y)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
class TestAnyCut:
    @given(problem=problems, rows=st.integers(1, 199), workers=st.sampled_from([1, 2, 5]))
    @settings(max_examples=12, deadline=None)
    @pytest.mark.parametrize("factor", [*FACTORS, "glnp"])
    def test_any_cut_gives_the_same_labels_and_any_threads_the_same_bits(
        self, factor, problem, rows, workers
    ):
        X, y, _ = blobs(**problem, labelled=3 * problem["classes"])
        whole = fitted(factor, X, y)
        with rows_in_a_block(rows):
            cut = fitted(factor, X, y)
            together = fitted(factor, X, y, engine=ThreadEngine(workers))
        np.testing.assert_array_equal(together.label_distributions_, cut.label_distributions_)
        np.testing.assert_array_equal(together.predict_proba(X), cut.predict_proba(X))
        expected = raw_scores(whole, X, y)
        if factor != "glnp":  # its scores of new rows are not those of its training rows
            np.testing.assert_allclose(
                raw_scores(cut, X, y), expected, rtol=0, atol=1e-5 * np.abs(expected).max()
            )
        clear = clear_rows(whole.label_distributions_)
        np.testing.assert_array_equal(cut.transduction_[clear], whole.transduction_[clear])

    @given(problem=problems, order=st.randoms(use_true_random=False))
    @settings(max_examples=10, deadline=None)
    @pytest.mark.parametrize("factor", FACTORS)
    def test_the_order_of_rows_does_not_matter(self, factor, problem, order):
        X, y, _ = blobs(**problem, labelled=3 * problem["classes"])
        order.shuffle(permutation := list(range(len(X))))
        straight = fitted(factor, X, y)
        shuffled = fitted(factor, X[permutation], y[permutation], landmarks=X[:8])
        expected = raw_scores(straight, X, y)
        found = raw_scores(shuffled, X[permutation], y[permutation])
        atol = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(found, expected[permutation], rtol=0, atol=atol)
        clear = clear_rows(straight.label_distributions_)[permutation]
        np.testing.assert_array_equal(
            shuffled.transduction_[clear], straight.transduction_[permutation][clear]
        )
