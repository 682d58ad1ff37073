"""Whatever the cut into blocks, the threads or the order of the rows: the same labels."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from biglp._core.blocks import Block, Cut
from biglp._engines import SerialEngine, ThreadEngine
from helpers import assert_scores_agree, blobs, clear_rows, model, raw_scores, rows_in_a_block
from strategies import problems

FACTORS = ("anchors", "nystrom", "linear", "glnp")
PARAMS = {"glnp": {"factor_params": {"max_iter": 15, "tol": 0.0}}}

cuts = st.lists(st.integers(1, 199), max_size=12, unique=True)


def random_cut(source, places):
    """Blocks between the given places, of any sizes."""
    n = source.n_rows
    edges = [0, *sorted(place for place in places if place < n), n]
    plan = Cut(len(edges) - 1)
    return [
        Block(source, index, start, stop, plan=plan)
        for index, (start, stop) in enumerate(pairwise(edges))
    ]


def fitted(factor, X, y, **changes):
    # Given landmarks: which rows k-means samples is not the question here.
    landmarks = changes.pop("landmarks", X[:8])
    estimator = model(factor=factor, landmarks=landmarks, n_landmarks=8, **PARAMS.get(factor, {}))
    return estimator.set_params(**changes).fit(X, y)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
class TestAnyCut:
    @given(problem=problems, places=cuts)
    @settings(max_examples=15, deadline=None)
    @pytest.mark.parametrize("factor", FACTORS)
    def test_any_cut_into_blocks_gives_the_same_labels(self, factor, problem, places):
        X, y, _ = blobs(**problem, labelled=3 * problem["classes"])
        whole = fitted(factor, X, y)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "biglp._fit.pipeline.cut_rows", lambda source, _: random_cut(source, places)
            )
            cut = fitted(factor, X, y)
        if factor != "glnp":  # its scores of new rows are not those of its training rows
            assert_scores_agree_where_clear(raw_scores(cut, X, y), raw_scores(whole, X, y))
        assert_labels_agree(cut, whole)

    @given(problem=problems, places=cuts, workers=st.sampled_from([1, 2, 5]))
    @settings(max_examples=10, deadline=None)
    @pytest.mark.parametrize("factor", FACTORS)
    def test_any_number_of_threads_gives_the_same_bits(self, factor, problem, places, workers):
        X, y, _ = blobs(**problem, labelled=3 * problem["classes"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "biglp._fit.pipeline.cut_rows", lambda source, _: random_cut(source, places)
            )
            alone = fitted(factor, X, y, engine=SerialEngine())
            together = fitted(factor, X, y, engine=ThreadEngine(workers))
        np.testing.assert_array_equal(together.label_distributions_, alone.label_distributions_)
        np.testing.assert_array_equal(together.transduction_, alone.transduction_)
        np.testing.assert_array_equal(together.predict_proba(X), alone.predict_proba(X))

    @given(problem=problems, order=st.randoms(use_true_random=False))
    @settings(max_examples=15, deadline=None)
    @pytest.mark.parametrize("factor", ["anchors", "nystrom", "linear"])
    def test_the_order_of_rows_does_not_matter(self, factor, problem, order):
        X, y, _ = blobs(**problem, labelled=3 * problem["classes"])
        permutation = list(range(len(X)))
        order.shuffle(permutation)
        straight = fitted(factor, X, y)
        shuffled = fitted(factor, X[permutation], y[permutation], landmarks=X[:8])
        found = np.empty_like(raw_scores(straight, X, y))
        found[permutation] = raw_scores(shuffled, X[permutation], y[permutation])
        expected = raw_scores(straight, X, y)
        assert_scores_agree_where_clear(found, expected)
        labels = np.empty_like(straight.transduction_)
        labels[permutation] = shuffled.transduction_
        clear = clear_rows(straight.label_distributions_)
        np.testing.assert_array_equal(labels[clear], straight.transduction_[clear])


def assert_scores_agree_where_clear(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def assert_labels_agree(one, other):
    clear = clear_rows(other.label_distributions_)
    np.testing.assert_array_equal(one.transduction_[clear], other.transduction_[clear])


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("landmarks", ["kmeans", "kmeans-full", "random"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_threads_give_the_same_bits_from_landmarks_to_labels(landmarks, workers, storage):
    X, y, _ = blobs(n=400, dtype="float32")
    X = storage(np.where(X > 0, X, 0))
    with rows_in_a_block(23):
        alone = model(landmarks=landmarks, engine="serial").fit(X, y)
        together = model(landmarks=landmarks, engine=ThreadEngine(workers)).fit(X, y)
    np.testing.assert_array_equal(together.label_distributions_, alone.label_distributions_)
    factors = [one._model.views[0].features.factor for one in (together, alone)]
    np.testing.assert_array_equal(factors[0].landmarks, factors[1].landmarks)


@given(scale=st.sampled_from([1e-3, 1.0, 1e3]), shift=st.floats(-50, 50), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_moving_and_scaling_all_rows_changes_nothing(scale, shift, seed):
    """Distances keep their ratios, and the automatic bandwidth follows them."""
    X, y, _ = blobs(seed=seed)
    plain = model(bandwidth="auto", landmarks=X[:15]).fit(X, y)
    moved = model(bandwidth="auto", landmarks=(X[:15] + shift) * scale)
    moved.fit((X + shift) * scale, y)
    assert_scores_agree(
        raw_scores(moved, (X + shift) * scale, y), raw_scores(plain, X, y), tolerance=1e-6
    )


@given(seed=st.integers(0, 99), classes=st.integers(2, 5))
@settings(max_examples=15, deadline=None)
def test_the_names_of_classes_do_not_matter(seed, classes):
    X, y, _ = blobs(seed=seed, classes=classes, labelled=4 * classes)
    order = np.random.default_rng(seed).permutation(classes)
    renamed = np.where(y >= 0, order[y], -1)
    plain, other = model().fit(X, y), model().fit(X, renamed)
    np.testing.assert_allclose(
        other.label_distributions_[:, order], plain.label_distributions_, atol=1e-10
    )
