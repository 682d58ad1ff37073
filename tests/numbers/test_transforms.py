"""What is done to rows: kinds of features, their scales, directions, words, and chains of these."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core import ParameterError
from biglp._rows import PreparedRows, as_source
from biglp._transforms import SCALINGS, Chain, Fill, Project, Scale
from biglp._transforms.project import leading_directions, principal_directions


def test_unknown_kind():
    with pytest.raises(
        ParameterError, match=r"'robust' is not known; use one of auto, none, .*, table\."
    ):
        Scale("robust").fit(np.eye(5, 3))


def test_arrays_are_all_there_is():
    rng = np.random.default_rng(0)
    sample = np.column_stack([rng.normal(size=500), np.exp(rng.normal(0, 3, 500))])
    counts = sparse.random(80, 300, 0.05, format="csr", random_state=0)
    for rows, kind in ((sample, "table"), (sample, "unit"), (counts, "text")):
        scaling = Scale(kind).fit(rows)
        again = Chain.from_state(Chain([scaling]).state())
        assert again.describe() == scaling.describe()
        before, after = scaling.apply(rows), again.apply(rows)
        if sparse.issparse(before):
            before, after = before.toarray(), after.toarray()
        np.testing.assert_array_equal(before, after)


def test_rows_are_not_changed_in_place():
    rng = np.random.default_rng(0)
    sample = np.column_stack([rng.normal(size=500), np.exp(rng.normal(0, 3, 500))])
    for rows in (sample, sparse.csr_matrix(sample)):
        before = rows.copy()
        for kind in SCALINGS:
            Scale(kind).fit(rows).apply(rows)
        assert (before != rows).sum() == 0


def test_widths_below_the_normal_numbers_say_nothing():
    """One over such a width is infinite."""
    rows = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 5e-324, 1e-310, 2.0]])
    assert Scale("minmax").fit(rows).factor.tolist() == [0.0, 0.0, 0.0, 0.5]


def test_denormal_numbers_are_scaled_without_overflow():
    rows = np.array([[1e-40, 2.0], [3e-40, 1.0]], dtype=np.float32)
    scaled = Scale(factor=np.array([1e40, 1.0])).apply(rows)
    assert np.isfinite(scaled).all()
    np.testing.assert_array_equal(scaled[:, 1], rows[:, 1])


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


@pytest.fixture(scope="module")
def scaled():
    return Scale("auto").fit(TABLE).apply(TABLE)


def test_each_kind_is_counted():
    assert Scale("auto").fit(TABLE).describe() == {"scaling": "table", "columns": KINDS}


def test_numbers_and_tails_have_spread_one(scaled):
    numbers = [0, 1, 2, 9]
    np.testing.assert_allclose(scaled[:, numbers].std(axis=0), 1.0, rtol=1e-3)
    np.testing.assert_allclose(scaled[:, [0, 1, 9]].mean(axis=0), 0.0, atol=1e-3)


def test_only_long_tails_are_put_on_a_logarithmic_scale(scaled):
    assert scaled[:, 2].max() < 7.0 < (TABLE[:, 2].max() - TABLE[:, 2].mean()) / TABLE[:, 2].std()
    np.testing.assert_allclose(np.corrcoef(scaled[:, 0], TABLE[:, 0])[0, 1], 1.0, rtol=1e-5)


def test_two_categories_are_as_far_apart_as_two_rows_in_a_number(scaled):
    group = scaled[:, 4:8]
    first, second = group[COLOURS[:, 0] == 1][0], group[COLOURS[:, 1] == 1][0]
    assert np.linalg.norm(first - second) == pytest.approx(np.sqrt(2))
    for lone in (8, 10):
        assert np.ptp(scaled[:, lone]) == pytest.approx(np.sqrt(2))


def test_constants_say_nothing(scaled):
    assert not scaled[:, 3].any()


def test_a_rare_mark_does_not_decide_distances(scaled):
    standard = Scale("standard").fit(TABLE).apply(TABLE)
    assert np.ptp(standard[:, 8]) > 10 > 2 > np.ptp(scaled[:, 8])


def test_sparse_tables_are_not_filled_in():
    columns = [0, 2, 3, 4, 5, 6, 7, 8]
    rows = sparse.csr_matrix(TABLE[:, columns])
    scaling = Scale("auto").fit(rows)
    assert scaling.kind == "table"
    assert scaling.offset is None
    scaled = scaling.apply(rows)
    assert scaled.nnz <= rows.nnz
    dense = scaling.apply(rows.toarray())
    np.testing.assert_allclose(scaled.toarray(), dense, rtol=1e-6)


def test_numbers_from_0_to_1_beside_categories_are_a_table():
    numbers = RNG.beta(2, 20, (N, 3))
    numbers = (numbers - numbers.min(axis=0)) / np.ptp(numbers, axis=0)
    assert Scale("auto").fit(numbers).kind == "none"
    assert Scale("auto").fit(np.hstack([numbers, COLOURS])).kind == "table"


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(COLOURS, id="categories"),
        pytest.param(RNG.integers(0, 256, (N, 64)), id="pixels"),
        pytest.param(RNG.random((N, 64)), id="shares"),
    ],
)
def test_features_of_one_scale_are_left_alone(rows):
    scaling = Scale("auto").fit(rows.astype(np.float32))
    assert scaling.kind == "none"
    assert scaling.factor is None


class TestGroups:
    """One-hot groups are runs of neighbours."""

    def test_two_groups_side_by_side(self):
        other = np.eye(3)[RNG.integers(0, 3, N)]
        assert self.groups(np.hstack([COLOURS, other])) == (2, [1] * 7)

    def test_a_number_ends_a_group(self):
        groups, factors = self.groups(np.column_stack([COLOURS, RNG.normal(size=N), COLOURS]))
        assert groups == 2
        assert factors[:4] + factors[5:] == [1] * 8

    def test_rare_marks_that_never_meet_are_no_group(self):
        marks = np.zeros((N, 3))
        marks[[0, 1, 2], [0, 1, 2]] = 1
        assert self.groups(marks) == (0, [np.sqrt(2)] * 3)

    @settings(deadline=None)
    @given(st.lists(st.integers(2, 5), min_size=1, max_size=6), st.integers(0, 100))
    def test_dense_and_sparse_rows_have_the_same(self, sizes, seed):
        rng = np.random.default_rng(seed)
        rows = np.hstack([np.eye(size)[rng.integers(0, size, 200)] for size in sizes])
        assert self.groups(rows) == self.groups(sparse.csr_matrix(rows))

    @staticmethod
    def groups(rows):
        """How many there are, and the factor of each feature: √2 for those in none."""
        scale = Scale("table").fit(rows)
        return scale.describe()["columns"]["groups"], scale.factor.tolist()


class TestEmbeddings:
    """Many numbers of both signs that were not scaled one by one."""

    LENGTHS = np.exp(RNG.normal(0.0, 0.4, (N, 1)))
    ROWS = (RNG.normal(0.1, 1.0, (N, 48)) * np.linspace(1, 4, 48)).astype(np.float32)

    def test_rows_get_unit_length(self):
        rows = self.ROWS * self.LENGTHS
        scaling = Scale("auto").fit(rows)
        assert scaling.describe() == {"scaling": "unit"}
        lengths = np.linalg.norm(scaling.apply(rows), axis=1)
        np.testing.assert_allclose(lengths, 1.0, rtol=1e-5)

    def test_lengths_that_are_alike_are_left_alone(self):
        rows = self.ROWS / np.linalg.norm(self.ROWS, axis=1, keepdims=True)
        assert Scale("auto").fit(rows).kind == "none"

    @pytest.mark.parametrize("change", ["few", "whole", "one sign", "standardised", "two values"])
    def test_other_rows_are_no_embeddings(self, change):
        rows = self.ROWS * self.LENGTHS
        if change == "few":
            rows = rows[:, :20]
        elif change == "whole":
            rows = np.rint(rows * 10)
        elif change == "one sign":
            rows = np.abs(rows)
        elif change == "standardised":
            rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        else:
            rows[:, 3] = rows[:, 3] > 0
        assert Scale("auto").fit(rows).kind != "unit"


def test_two_values_are_found_in_the_whole_sample():
    rows = np.zeros((N, 2))
    rows[::2, :] = 1.0
    rows[-1, 1] = 0.5  # a third value, late
    for sample in (rows, sparse.csr_matrix(rows)):
        columns = Scale("table").fit(sample).describe()["columns"]
        assert (columns["two_valued"], columns["numbers"]) == (1, 1)


def test_a_bound_beyond_all_numbers_is_not_reached():
    rows = np.linspace(-8e307, 8e307, 100)[:, None]
    assert Scale("table").fit(rows).logged is None


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    falling = rng.normal(size=(300, 60)) * 0.8 ** np.arange(60)
    return (falling @ np.linalg.qr(rng.normal(size=(60, 60)))[0]).astype(np.float32)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_leading_directions_are_singular_vectors(rows, form):
    directions, lengths = leading_directions(form(rows), seed=0, count=6)
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    np.testing.assert_allclose(lengths, values[:6], rtol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(directions * vectors[:6].T, axis=0)), 1.0, rtol=1e-2)
    np.testing.assert_allclose(directions.T @ directions, np.eye(6), atol=1e-4)


def test_rows_of_low_rank_have_zeros_left():
    rows = np.outer(np.arange(1.0, 41.0), np.arange(1.0, 31.0))
    directions, lengths = leading_directions(sparse.csr_matrix(rows), seed=0, count=5)
    assert np.isfinite(directions).all()
    assert lengths[0] == pytest.approx(np.linalg.norm(rows))
    np.testing.assert_allclose(rows @ directions @ directions.T, rows, rtol=1e-6)


def test_no_more_directions_than_rows(rows):
    assert leading_directions(rows[:4], seed=0, count=10)[0].shape == (60, 4)
    assert principal_directions(rows[:4], 0, 10)[0].shape == (60, 4)


def test_share_of_the_variance(rows):
    centred = rows - rows.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    _, share = principal_directions(rows, 0, 8)
    assert share == pytest.approx(values[:8].sum() / values.sum(), rel=1e-3)


def test_wide_rows_have_the_same_share(rows):
    _, share = principal_directions(rows, 0, 8)
    wide = np.hstack([rows, np.zeros((300, 2000), np.float32)])  # by a random subspace
    assert principal_directions(wide, 0, 8)[1] == pytest.approx(share, rel=1e-2)


def test_rows_of_zeros_have_no_directions():
    """And nothing is divided by zero, which would be told as a warning of NumPy."""
    directions, lengths = leading_directions(sparse.csr_matrix((9, 5)), 0, 2)
    assert not directions.any()
    assert not lengths.any()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("power", [-500, 700])
def test_the_size_of_rows_does_not_matter(rows, form, power):
    exact = rows.astype(np.float64)
    expected = principal_directions(form(exact), seed=0, count=3)
    found = principal_directions(form(np.ldexp(exact, power)), seed=0, count=3)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    assert found[1] == pytest.approx(expected[1])


def test_features_that_never_change_have_no_part(rows):
    wide = np.zeros((len(rows), 100), dtype=np.float32)
    places = np.sort(np.random.default_rng(1).permutation(100)[:60])
    wide[:, places] = rows
    wide[:, np.setdiff1d(np.arange(100), places)[:3]] = 7.0
    directions, share = principal_directions(wide, 0, 8)
    alone, expected = principal_directions(rows, 0, 8)
    np.testing.assert_allclose(directions[places], alone, atol=1e-6)
    assert np.count_nonzero(directions.any(axis=1)) == 60
    assert share == pytest.approx(expected)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_rows_of_few_dimensions_among_many_features(size):
    """ARPACK finds no more than the five that there are, and must not try for long."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(400, 5)) @ rng.normal(size=(5, 300)) * size).astype(np.float32)
    directions, share = principal_directions(rows, 0, 40)
    assert directions.shape == (300, 40)
    assert share == pytest.approx(1.0, abs=1e-4)
    centred = rows - rows.mean(axis=0)
    seen = centred @ directions @ directions.T
    np.testing.assert_allclose(seen, centred, atol=1e-4 * np.abs(centred).max())


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


def test_on_tensors():
    torch = pytest.importorskip("torch")
    chain = Chain([Fill(), Scale("minmax"), Project(3)]).fit(GAPPY)
    found = chain.apply(torch.as_tensor(GAPPY))
    np.testing.assert_allclose(found.numpy(), chain.apply(GAPPY), rtol=1e-4, atol=1e-5)


def test_an_empty_chain_leaves_rows_alone():
    chain = Chain.from_state(Chain().state())
    assert chain.apply(GAPPY) is GAPPY
    assert (chain.changes_rows, chain.keeps_sparse, chain.unit) == (False, True, False)


def test_filled_rows_are_prepared_rows():
    found = as_source(GAPPY, missing="mean")
    assert isinstance(found, PreparedRows)
    np.testing.assert_array_equal(found.read(0, 300), Chain([Fill()]).fit(GAPPY).apply(GAPPY))


N_TEXTS, WORDS, TOPICS = 600, 400, 3


def made_texts(n_rows=N_TEXTS, seed=0):
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

    def test_not_dense_rows(self):
        assert not is_text(COUNTS.toarray())

    def test_not_a_table_of_categories(self):
        rng = np.random.default_rng(0)
        groups = [np.eye(60)[rng.integers(0, 60, N_TEXTS)] for _ in range(5)]
        table = sparse.csr_matrix(np.hstack([*groups, rng.normal(size=(N_TEXTS, 4))]))
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
        idf = np.log((1 + N_TEXTS) / (1 + texts)) + 1
        np.testing.assert_allclose(counted.final, idf**2)
        np.testing.assert_allclose(weighed.factor, idf)
        assert counted.factor is weighed.final is None

    def test_words_of_one_text_are_not_used(self):
        rows = sparse.hstack([COUNTS, sparse.csr_matrix(([1.0], ([5], [0])), (N_TEXTS, 2))]).tocsr()
        used = Scale("text").fit(COUNTS).used
        np.testing.assert_array_equal(Scale("text").fit(rows).used, used)

    def test_the_most_frequent_words_are_used(self):
        rows = sparse.random(300, 40_000, 0.02, format="csr", random_state=0)
        texts = np.asarray((rows > 0).sum(axis=0)).ravel()
        words = Scale("text").fit(rows).used
        assert len(words) == 30_000
        assert texts[words].min() >= np.sort(texts)[-30_001]

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
    assert rows.shape == (N_TEXTS, 64)
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
@given(st.integers(10, N_TEXTS))
def test_any_cut_into_blocks_gives_the_same_rows(rows_each):
    prepared = PreparedRows(as_source(COUNTS), np.dtype(np.float32), SCALING)
    starts = range(0, N_TEXTS, rows_each)
    blocks = [prepared.read(start, min(start + rows_each, N_TEXTS)) for start in starts]
    np.testing.assert_allclose(np.concatenate(blocks), SCALING.apply(COUNTS), atol=1e-6)


class TestFit:
    """Through the estimator."""

    LABELS = np.where(np.arange(N_TEXTS) < 15, TOPIC, -1)

    def test_words_as_they_are_are_enough(self):
        model = LowRankLabelPropagation(random_state=0).fit(COUNTS, self.LABELS)
        as_they_are = LowRankLabelPropagation(random_state=0, scaling="none", projection="none")
        plain = as_they_are.fit(COUNTS, self.LABELS)
        found, before = (np.mean(one.transduction_ == TOPIC) for one in (model, plain))
        assert model.report_["scaling"] == "text"
        assert found > max(0.85, before)

    @pytest.mark.parametrize(("projection", "width"), [(7, 7), ("none", None), ("auto", 64)])
    def test_number_of_directions(self, projection, width):
        model = LowRankLabelPropagation(random_state=0, projection=projection)
        assert model.fit(COUNTS, self.LABELS).report_.get("directions") == width

    def test_factors_about_distances_get_text_too(self):
        for factor, kind in (("anchors", "text"), ("nystrom", "text"), ("linear", "none")):
            model = LowRankLabelPropagation(factor=factor, random_state=0)
            assert model.fit(COUNTS, self.LABELS).report_["scaling"] == kind
