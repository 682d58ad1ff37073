"""Kinds of features: recognised in made tables, each on the scale of its kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from biglp._transforms import Scale

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


def test_statistics_on_a_device():
    pytest.importorskip("torch")
    rows = np.random.default_rng(0).normal(3, 2, size=(500, 4)).astype(np.float32)
    rows[:, 2] = 7
    for kind in ("standard", "minmax"):
        here, there = (Scale(kind, device).fit(rows) for device in ("cpu", "torch:cpu"))
        np.testing.assert_allclose(there.offset, here.offset, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(there.factor, here.factor, rtol=1e-9, atol=1e-12)


def test_a_bound_beyond_all_numbers_is_not_reached():
    rows = np.linspace(-8e307, 8e307, 100)[:, None]
    assert Scale("table").fit(rows).logged is None
