"""Rows of words: recognised, weighed, projected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core.blocks import cut_rows
from biglp._rows import PreparedRows, as_source
from biglp._transforms import Chain, Project, Scale

N, WORDS, TOPICS = 600, 400, 3


def made_texts(n_rows=N, seed=0):
    """Counts of words: each topic has its own, all share the most frequent ones."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, TOPICS, n_rows)
    common = 1.0 / np.arange(1, WORDS + 1)
    own = rng.random((TOPICS, WORDS)) < 0.1
    chances = common * np.where(own[topics], 12.0, 1.0)
    chances *= rng.lognormal(3.0, 0.4, (n_rows, 1)) / chances.sum(axis=1, keepdims=True)
    counts = sparse.csr_matrix(rng.poisson(chances).astype(np.float32))
    return counts[:, rng.permutation(WORDS)], topics


COUNTS, TOPIC = made_texts()


def fitted_chain(rows, **options):
    return Chain([Scale("auto"), Project(words=True, unit=True, **options)]).fit(rows)


def is_text(rows):
    return Scale("auto").fit(rows).kind == "text"


class TestRecognised:
    """Sparse rows of words, and what is not."""

    def test_counts(self):
        assert is_text(COUNTS)

    def test_weights_of_both_signs(self):
        signs = COUNTS.copy()
        signs.data *= np.random.default_rng(0).choice([-0.3, 0.3], COUNTS.nnz)
        assert is_text(signs)

    def test_not_dense_rows(self):
        assert not is_text(COUNTS.toarray())

    def test_not_a_table_of_categories(self):
        rng = np.random.default_rng(0)
        groups = [np.eye(60)[rng.integers(0, 60, N)] for _ in range(5)]
        table = sparse.csr_matrix(np.hstack([*groups, rng.normal(size=(N, 4))]))
        assert not is_text(table)
        assert Scale("auto").fit(table).kind == "table"

    def test_not_few_features_nor_filled_rows(self):
        assert not is_text(COUNTS[:, :150])
        assert not is_text(sparse.csr_matrix(COUNTS.toarray() + 1))

    def test_words_in_dense_rows_when_told(self):
        dense, rows = (Scale("text").fit(rows) for rows in (COUNTS.toarray(), COUNTS))
        np.testing.assert_array_equal(dense.final, rows.final)
        np.testing.assert_allclose(
            dense.apply(COUNTS.toarray()), rows.apply(COUNTS).toarray(), rtol=1e-5, atol=1e-7
        )


class TestWeights:
    """idf twice for counts, once more for weights that have it."""

    def test_counts_and_fractions(self):
        counted, weighed = Scale("text").fit(COUNTS), Scale("text").fit(COUNTS * 0.3)
        texts = np.asarray((COUNTS > 0).sum(axis=0)).ravel()[counted.used]
        idf = np.log((1 + N) / (1 + texts)) + 1
        np.testing.assert_allclose(counted.final, idf**2)
        np.testing.assert_allclose(weighed.factor, idf)
        assert counted.factor is weighed.final is None

    def test_words_of_one_text_are_not_used(self):
        rows = sparse.hstack([COUNTS, sparse.csr_matrix(([1.0], ([5], [0])), (N, 2))]).tocsr()
        used = Scale("text").fit(COUNTS).used
        np.testing.assert_array_equal(Scale("text").fit(rows).used, used)

    def test_the_most_frequent_words_are_used(self, monkeypatch):
        texts = np.asarray((COUNTS > 0).sum(axis=0)).ravel()
        monkeypatch.setattr("biglp._transforms.project.MOST_WORDS", 20)
        words = Scale("text").fit(COUNTS).used
        assert len(words) == 20
        assert texts[words].min() >= np.sort(texts)[-21]

    def test_texts_without_a_known_word_stay_zero(self):
        rows = sparse.csr_matrix((3, WORDS), dtype=np.float32)
        assert not fitted_chain(COUNTS).apply(rows).any()


def test_used_words_are_those_of_plain_indexing():
    scaling = Scale("text", used=np.array([0, 3, 17, 250, 399]))
    for rows in (COUNTS, COUNTS[:0], COUNTS[:1], sparse.csr_array(COUNTS)):
        np.testing.assert_array_equal(
            scaling.apply(rows).toarray(), rows.toarray()[:, scaling.used]
        )
    assert scaling.width(WORDS) == 5


def test_rows_become_dense_and_have_length_one():
    scaling = fitted_chain(COUNTS)
    rows = scaling.apply(COUNTS)
    assert rows.shape == (N, 64)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-5)
    assert scaling.describe() == {"scaling": "text", "directions": 64}


def test_leading_directions_count_more():
    project = fitted_chain(COUNTS, count=9).transforms[-1]
    lengths = np.linalg.norm(project.directions, axis=0)
    assert lengths[0] == pytest.approx(1.0, rel=1e-4)
    assert (np.diff(lengths) < 1e-4).all()


SCALING = fitted_chain(COUNTS)


@settings(max_examples=20, deadline=None)
@given(st.integers(10, N))
def test_any_cut_into_blocks_gives_the_same_rows(rows_each):
    scaling = SCALING
    prepared = PreparedRows(as_source(COUNTS), np.dtype(np.float32), scaling)
    blocks = [block.rows() for block in cut_rows(prepared, rows_each)]
    np.testing.assert_allclose(np.concatenate(blocks), scaling.apply(COUNTS), atol=1e-6)


class TestFit:
    """Through the estimator."""

    LABELS = np.where(np.arange(N) < 15, TOPIC, -1)

    def test_words_as_they_are_are_enough(self):
        model = LowRankLabelPropagation(random_state=0).fit(COUNTS, self.LABELS)
        as_they_are = LowRankLabelPropagation(random_state=0, scaling="none", projection="none")
        plain = as_they_are.fit(COUNTS, self.LABELS)
        found, before = (np.mean(one.transduction_ == TOPIC) for one in (model, plain))
        assert model.report_["scaling"] == "text"
        assert found > max(0.85, before)

    def test_new_texts_and_a_model_file(self, tmp_path):
        model = LowRankLabelPropagation(random_state=0).fit(COUNTS, self.LABELS)
        model.save(tmp_path / "model")
        loaded = LowRankLabelPropagation.load(tmp_path / "model")
        again = loaded.predict_proba(COUNTS[:50])
        np.testing.assert_allclose(again, model.predict_proba(COUNTS[:50]), atol=1e-6)

    @pytest.mark.parametrize(("projection", "width"), [(7, 7), ("none", None), ("auto", 64)])
    def test_number_of_directions(self, projection, width):
        model = LowRankLabelPropagation(random_state=0, projection=projection)
        assert model.fit(COUNTS, self.LABELS).report_.get("directions") == width

    def test_factors_about_distances_get_text_too(self):
        for factor, kind in (("anchors", "text"), ("nystrom", "text"), ("linear", "none")):
            model = LowRankLabelPropagation(factor=factor, random_state=0)
            assert model.fit(COUNTS, self.LABELS).report_["scaling"] == kind
