"""What is done to rows: kinds of features, their scales, directions, words, and chains of these."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from biglp._core import ParameterError
from biglp._rows import PreparedRows, as_source
from biglp._transforms import (
    SCALINGS,
    Chain,
    Fill,
    Project,
    Scale,
    leading_directions,
    principal_directions,
)

N = 2000


RNG = np.random.default_rng(0)


COLOURS = np.eye(4)[RNG.integers(0, 4, N)]


TABLE = np.column_stack(
    [
        RNG.normal(50.0, 9.0, N),  # a number
        RNG.integers(1, 7, N),  # a code
        np.exp(RNG.normal(0.0, 2.0, N)),  # a long tail
        np.full(N, 3.0),  # a constant
        COLOURS,  # a one-hot group
        RNG.random(N) < 0.005,  # a rare mark
        RNG.normal(0.0, 1e-3, N),
        np.where(RNG.random(N) < 0.4, 2.0, 1.0),  # two values that are not 0 and 1
    ]
).astype(np.float32)


KINDS = {"numbers": 3, "long_tails": 1, "two_valued": 6, "groups": 1, "constant": 1}


class TestTable:
    def test_each_kind_has_its_scale(self):
        scaling = Scale("auto").fit(TABLE)
        assert scaling.describe() == {"scaling": "table", "columns": KINDS}
        scaled = scaling.apply(TABLE)
        np.testing.assert_allclose(scaled[:, [0, 1, 2, 9]].std(axis=0), 1.0, rtol=1e-3)
        np.testing.assert_allclose(scaled[:, [0, 1, 9]].mean(axis=0), 0.0, atol=1e-3)
        # Only the long tail is put on a logarithmic scale.
        tail = TABLE[:, 2]
        assert scaled[:, 2].max() < 7.0 < (tail.max() - tail.mean()) / tail.std()
        assert np.corrcoef(scaled[:, 0], TABLE[:, 0])[0, 1] == pytest.approx(1.0, rel=1e-5)
        # Two categories are as far apart as two rows in a number.
        group = scaled[:, 4:8]
        first, second = group[COLOURS[:, 0] == 1][0], group[COLOURS[:, 1] == 1][0]
        assert np.linalg.norm(first - second) == pytest.approx(np.sqrt(2))
        for lone in (8, 10):
            assert np.ptp(scaled[:, lone]) == pytest.approx(np.sqrt(2))
        assert not scaled[:, 3].any()  # constants say nothing
        standard = Scale("standard").fit(TABLE).apply(TABLE)  # a rare mark would decide distances
        assert np.ptp(standard[:, 8]) > 10 > 2 > np.ptp(scaled[:, 8])

    def test_sparse_tables_are_not_filled_in(self):
        rows = sparse.csr_matrix(TABLE[:, [0, 2, 3, 4, 5, 6, 7, 8]])
        scaling = Scale("auto").fit(rows)
        assert scaling.kind == "table"
        scaled = scaling.apply(rows)
        assert scaled.nnz <= rows.nnz
        np.testing.assert_allclose(scaled.toarray(), scaling.apply(rows.toarray()), rtol=1e-6)

    def test_two_values_are_found_in_the_whole_sample_and_bounds_beyond_all_numbers_are_not(self):
        rows = np.zeros((N, 2))
        rows[::2, :] = 1.0
        rows[-1, 1] = 0.5  # a third value, late
        for sample in (rows, sparse.csr_matrix(rows)):
            columns = Scale("table").fit(sample).describe()["columns"]
            assert (columns["two_valued"], columns["numbers"]) == (1, 1)
        assert Scale("table").fit(np.linspace(-8e307, 8e307, 100)[:, None]).logged is None

    @settings(deadline=None, max_examples=50)
    @given(st.lists(st.integers(2, 5), min_size=1, max_size=6), st.integers(0, 100))
    def test_groups_of_dense_and_sparse_rows_are_the_same(self, sizes, seed):
        rng = np.random.default_rng(seed)
        rows = np.hstack([np.eye(size)[rng.integers(0, size, 200)] for size in sizes])
        assert groups_of(rows) == groups_of(sparse.csr_matrix(rows))


def groups_of(rows):
    scale = Scale("table").fit(rows)
    return scale.describe()["columns"]["groups"], scale.factor.tolist()


LENGTHS = np.exp(RNG.normal(0.0, 0.4, (N, 1)))
EMBEDDED = (RNG.normal(0.1, 1.0, (N, 48)) * np.linspace(1, 4, 48)).astype(np.float32)
NUMBERS = RNG.beta(2, 20, (N, 3))
NUMBERS = (NUMBERS - NUMBERS.min(axis=0)) / np.ptp(NUMBERS, axis=0)
SCALES = {
    "categories": (COLOURS, "none"),
    "pixels": (RNG.integers(0, 256, (N, 64)), "none"),
    "pixels, mostly empty": (
        RNG.integers(1, 256, (N, 400)) * (RNG.random((N, 400)) < 0.05),
        "none",
    ),
    "counts of words": (RNG.poisson(RNG.gamma(1.0, 0.03, (N, 1)), (N, 400)), "text"),
    "shares": (RNG.random((N, 64)), "none"),
    "numbers from 0 to 1": (NUMBERS, "none"),
    "numbers from 0 to 1 beside categories": (np.hstack([NUMBERS, COLOURS]), "table"),
    "embeddings": (EMBEDDED * LENGTHS, "unit"),
    "of length 1": (EMBEDDED / np.linalg.norm(EMBEDDED, axis=1)[:, None], "unit"),
    "of lengths that are alike": (RNG.normal(size=(N, 48)) * np.linspace(1, 1.2, 48), "none"),
    "few features": ((EMBEDDED * LENGTHS)[:, :20], "another"),
    "standardised": ((EMBEDDED * LENGTHS) / (EMBEDDED * LENGTHS).std(axis=0), "another"),
    "of one sign": (np.abs(EMBEDDED * LENGTHS), "another"),
}


@pytest.mark.parametrize("name", SCALES)
def test_the_scale_is_recognised(name):
    rows, kind = SCALES[name]
    scaling = Scale("auto").fit(rows.astype(np.float32))
    assert scaling.kind == kind or (kind == "another" and scaling.kind != "unit")
    if kind == "none":
        assert scaling.factor is None
    if kind == "unit":
        lengths = np.linalg.norm(scaling.apply(rows), axis=1)
        np.testing.assert_allclose(lengths, 1.0, rtol=1e-5)


def test_arrays_are_all_there_is_and_rows_are_not_changed_in_place():
    rng = np.random.default_rng(0)
    sample = np.column_stack([rng.normal(size=500), np.exp(rng.normal(0, 3, 500))])
    counts = sparse.random(80, 300, 0.05, format="csr", random_state=0)
    given = [(sample, kind) for kind in SCALINGS if kind != "text"]
    for rows, kind in (*given, (sparse.csr_matrix(sample), "table"), (counts, "text")):
        before = rows.copy()
        scaling = Scale(kind).fit(rows)
        again = Chain.from_state(Chain([scaling]).state())
        assert again.describe() == scaling.describe()
        np.testing.assert_array_equal(dense(again.apply(rows)), dense(scaling.apply(rows)))
        assert (before != rows).sum() == 0
    with pytest.raises(ParameterError, match=r"'robust' is not known; use one of auto, none, "):
        Scale("robust").fit(sample)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def test_widths_below_the_normal_numbers_are_scaled_without_overflow():
    """One over such a width is infinite."""
    rows = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 5e-324, 1e-310, 2.0]])
    assert Scale("minmax").fit(rows).factor.tolist() == [0.0, 0.0, 0.0, 0.5]
    rows = np.array([[1e-40, 2.0], [3e-40, 1.0]], dtype=np.float32)
    scaled = Scale(factor=np.array([1e40, 1.0])).apply(rows)
    assert np.isfinite(scaled).all()
    np.testing.assert_array_equal(scaled[:, 1], rows[:, 1])


# --------------------------------------------------------------------------------------------------
# Directions.


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    falling = rng.normal(size=(300, 60)) * 0.8 ** np.arange(60)
    return (falling @ np.linalg.qr(rng.normal(size=(60, 60)))[0]).astype(np.float32)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_leading_directions_are_singular_vectors_of_rows_of_any_size(rows, form):
    directions, lengths = leading_directions(form(rows), seed=0, count=6)
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    np.testing.assert_allclose(lengths, values[:6], rtol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(directions * vectors[:6].T, axis=0)), 1.0, rtol=1e-2)
    np.testing.assert_allclose(directions.T @ directions, np.eye(6), atol=1e-4)
    exact = rows.astype(np.float64)
    expected = principal_directions(form(exact), seed=0, count=3)
    for power in (-500, 700):
        found = principal_directions(form(np.ldexp(exact, power)), seed=0, count=3)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
        assert found[1] == pytest.approx(expected[1])
    few = [each(form(rows[:4]), seed=0, count=10)[0] for each in DIRECTIONS]
    assert [one.shape for one in few] == [(60, 4)] * 2  # no more than rows


DIRECTIONS = (leading_directions, principal_directions)


def test_rows_of_low_rank_and_of_zeros():
    """And nothing is divided by zero, which would be told as a warning of NumPy."""
    rows = np.outer(np.arange(1.0, 41.0), np.arange(1.0, 31.0))
    directions, lengths = leading_directions(sparse.csr_matrix(rows), seed=0, count=5)
    assert np.isfinite(directions).all()
    assert lengths[0] == pytest.approx(np.linalg.norm(rows))
    np.testing.assert_allclose(rows @ directions @ directions.T, rows, rtol=1e-6)
    directions, lengths = leading_directions(sparse.csr_matrix((9, 5)), 0, 2)
    assert not directions.any()
    assert not lengths.any()


def test_projected_only_where_few_directions_say_most(rows):
    few = Project().fit(np.hstack([rows[:, :2], np.zeros((300, 250), np.float32)]))
    assert few.directions is not None
    noise = np.random.default_rng(0).normal(size=(300, 250)).astype(np.float32)
    none = Project().fit(noise)
    assert none.apply(noise) is noise
    assert (none.width(250), none.embeds, Project(5).fit(noise).width(250)) == (250, False, 5)
    for project in (few, none):
        again = Chain.from_state(Chain([project]).state())
        assert again.describe() == project.describe()


WHOLE = (
    np.random.default_rng(0).normal(size=(300, 2)) @ np.random.default_rng(1).normal(size=(2, 12))
    + 5.0
).astype(np.float32)


HOLES = np.random.default_rng(2).random(WHOLE.shape) < 0.05


GAPPY = np.where(HOLES, np.float32(np.nan), WHOLE)


def test_each_learns_what_those_before_it_leave():
    chain = Chain([Fill(), Scale("standard"), Project(2)]).fit(GAPPY)
    means = np.nanmean(GAPPY.astype(np.float64), axis=0)
    filled = np.where(HOLES, means, GAPPY)
    scaled = (filled - means) / filled.std(axis=0)
    np.testing.assert_allclose(chain.transforms[0].means, means, rtol=1e-6)
    expected = scaled @ chain.transforms[2].directions
    np.testing.assert_allclose(chain.apply(GAPPY), expected, rtol=1e-3, atol=1e-4)
    assert np.isnan(GAPPY).any()
    assert chain.describe() == {"scaling": "standard", "directions": 2}
    assert (chain.width(12), chain.embeds) == (2, True)
    again = Chain.from_state(chain.state())
    np.testing.assert_array_equal(again.apply(GAPPY), chain.apply(GAPPY))


def test_chains_on_tensors_empty_chains_and_filled_rows():
    empty = Chain.from_state(Chain().state())
    assert empty.apply(GAPPY) is GAPPY
    assert (empty.changes_rows, empty.keeps_sparse, empty.unit) == (False, True, False)
    filled = as_source(GAPPY, missing="mean").read(0, 300)
    np.testing.assert_array_equal(filled, Chain([Fill()]).fit(GAPPY).apply(GAPPY))
    torch = pytest.importorskip("torch")
    chain = Chain([Fill(), Scale("minmax"), Project(3)]).fit(GAPPY)
    found = chain.apply(torch.as_tensor(GAPPY))
    np.testing.assert_allclose(found.numpy(), chain.apply(GAPPY), rtol=1e-4, atol=1e-5)


# --------------------------------------------------------------------------------------------------
# Words.


N_TEXTS, WORDS, TOPICS = 600, 400, 3


def made_texts(n_rows=N_TEXTS, seed=0):
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


def test_rows_of_words_are_recognised_and_others_are_not():
    rng = np.random.default_rng(0)
    groups = [np.eye(60)[rng.integers(0, 60, N_TEXTS)] for _ in range(5)]
    table = sparse.csr_matrix(np.hstack([*groups, rng.normal(size=(N_TEXTS, 4))]))
    filled = sparse.csr_matrix(COUNTS.toarray() + 1)
    kinds = [Scale("auto").fit(rows).kind for rows in (COUNTS, table)]
    assert kinds == ["text", "table"]
    for other in (COUNTS.toarray() / 3, table.toarray(), COUNTS[:, :150], filled):
        assert Scale("auto").fit(other).kind != "text"
    dense_rows, rows = (Scale("auto").fit(rows) for rows in (COUNTS.toarray(), COUNTS))
    np.testing.assert_array_equal(dense_rows.final, rows.final)
    found, expected = dense_rows.apply(COUNTS.toarray()), rows.apply(COUNTS)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-6)


def test_weights_are_idf_twice_for_counts_and_once_for_weights_that_have_it():
    counted, weighed = Scale("text").fit(COUNTS), Scale("text").fit(COUNTS * 0.3)
    texts = np.asarray((COUNTS > 0).sum(axis=0)).ravel()[counted.used]
    idf = np.log((1 + N_TEXTS) / (1 + texts)) + 1
    np.testing.assert_allclose(counted.final, idf**2)
    np.testing.assert_allclose(weighed.factor, idf)
    assert counted.factor is weighed.final is None


def test_the_most_frequent_words_are_used_and_those_of_one_text_are_not():
    rows = sparse.hstack([COUNTS, sparse.csr_matrix(([1.0], ([5], [0])), (N_TEXTS, 2))]).tocsr()
    used = Scale("text").fit(COUNTS).used
    np.testing.assert_array_equal(Scale("text").fit(rows).used, used)
    rows = sparse.random(300, 40_000, 0.02, format="csr", random_state=0)
    texts = np.asarray((rows > 0).sum(axis=0)).ravel()
    words = Scale("text").fit(rows).used
    assert len(words) == 30_000
    assert texts[words].min() >= np.sort(texts)[-30_001]
    scaling = Scale("text", used=np.array([0, 3, 17, 250, 399]))
    for rows in (COUNTS, COUNTS[:0], COUNTS[:1], sparse.csr_array(COUNTS)):
        expected = rows.toarray()[:, scaling.used]
        np.testing.assert_array_equal(scaling.apply(rows).toarray(), expected)


def test_words_become_dense_rows_of_length_one_in_any_cut():
    chain = fitted_chain(COUNTS)
    rows = chain.apply(COUNTS)
    assert (rows.shape, rows.dtype) == ((N_TEXTS, 64), np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-5)
    assert chain.describe() == {"scaling": "text", "directions": 64}
    prepared = PreparedRows(as_source(COUNTS), np.dtype(np.float32), chain)
    for rows_each in (1, 7, 250):
        starts = range(0, N_TEXTS, rows_each)
        blocks = [prepared.read(start, min(start + rows_each, N_TEXTS)) for start in starts]
        np.testing.assert_allclose(np.concatenate(blocks), rows, atol=1e-6)
    unknown = sparse.csr_matrix((3, WORDS), dtype=np.float32)
    assert not chain.apply(unknown).any()  # texts without a known word stay zero
    lengths = np.linalg.norm(fitted_chain(COUNTS, count=9).transforms[-1].directions, axis=0)
    assert lengths[0] == pytest.approx(1.0, rel=1e-4)
    assert (np.diff(lengths) < 1e-4).all()  # leading directions count more
