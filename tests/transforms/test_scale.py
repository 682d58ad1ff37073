"""Kinds of scaling, and what is learnt from a sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from biglp._core.errors import ParameterError
from biglp._transforms import SCALINGS, Chain, Scale

WRONG = (
    r"scaling=.robust. is not known; use one of "
    r"auto, none, standard, minmax, log, unit, text, table\."
)


@pytest.mark.parametrize("kind", SCALINGS)
def test_known_kinds(kind):
    assert Scale(kind).fit(np.eye(5, 3)).kind in SCALINGS


def test_unknown_kind():
    with pytest.raises(ParameterError, match=WRONG):
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
