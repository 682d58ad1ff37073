"""Every factor and both solvers give what the dense n × n reference gives."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp._core import DegreeWarning
from biglp._core.arrays import to_dense
from biglp._fit.pipeline import Pipeline
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
@pytest.mark.parametrize("balance", ["none", [0.2, 0.3, 0.5]])
def test_probabilities_and_labels_agree(factor, balance):
    X, y, _ = blobs()
    L = landmarks_of(X)
    fitted = model(factor=factor, landmarks=L, class_balance=balance).fit(X, y)
    labels_share = np.bincount(y[y >= 0]) / (y >= 0).sum()
    prior = labels_share if balance == "none" else np.array(balance)
    scores = reference_scores(
        factor, X, y, L, 0.9, prior=None if balance == "none" else np.array(balance)
    )
    expected = ref.probabilities(scores, prior)
    np.testing.assert_allclose(fitted.label_distributions_, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(fitted.transduction_, expected.argmax(axis=1))


@pytest.mark.parametrize("factor", FACTORS)
def test_sparse_rows_agree(factor):
    X, y, _ = blobs(dtype="float32")
    X = np.where(np.abs(X) > 0.7, X, 0).astype("float32")
    L = landmarks_of(X)
    fitted = model(factor=factor, landmarks=L).fit(sparse.csr_matrix(X), y)
    expected = reference_scores(factor, X, y, L, 0.9, prior=np.full(3, 1 / 3))
    assert_scores_agree(raw_scores(fitted, sparse.csr_matrix(X), y), expected)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_any_size_of_block_agrees(factor, rows):
    X, y, _ = blobs(dtype="float32")
    L = landmarks_of(X)
    with rows_in_a_block(rows):
        fitted = model(factor=factor, landmarks=L, engine="threads").fit(X, y)
    expected = reference_scores(factor, X, y, L, 0.9, prior=np.full(3, 1 / 3))
    assert_scores_agree(raw_scores(fitted, X, y), expected)


@pytest.mark.parametrize("offset", [0.0, 10.0, 100.0, 1e4])
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


def test_nystrom_with_all_rows_as_landmarks_is_the_exact_kernel():
    X, y, _ = blobs(n=60)
    fitted = model(factor="nystrom", landmarks=X, bandwidth=0.8).fit(X, y)
    S, Y = ref.normalised_graph(ref.rbf_graph(X, 0.8)), ref.one_hot(y)
    expected = ref.balanced(ref.closed_form(S, Y, 0.9), Y, 0.9, np.full(3, 1 / 3))
    assert_scores_agree(raw_scores(fitted, X, y), expected, 1e-8)


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
def test_glnp_propagates_on_the_graph_that_it_learnt(factor, solver, dtype, monkeypatch):
    """F is what GLNP learns, so the reference takes F as given: W = FFᵀ."""
    learnt = []

    made = Pipeline.graphs

    def remember_factor(pipeline, prepared):
        (graph,) = made(pipeline, prepared)
        learnt.extend(to_dense(graph.factor.block_features(block)) for block in graph.blocks)
        return (graph,)

    monkeypatch.setattr(Pipeline, "graphs", remember_factor)
    X, y, _ = blobs(dtype=dtype)
    with rows_in_a_block(64):
        fitted = model(factor=factor, n_landmarks=8, solver=solver, tol=1e-12).fit(X, y)
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
