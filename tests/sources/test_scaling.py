"""Kinds of scaling, and what is learnt from a sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from biglp._core.errors import ParameterError
from biglp._sources import Scaling
from biglp._sources.scaling import SCALINGS
from biglp._sources.statistics import inverse

WRONG = (
    r"scaling=.robust. is not known; use one of "
    r"auto, none, standard, minmax, log, unit, text, table\."
)


@pytest.mark.parametrize("kind", SCALINGS)
def test_known_kinds(kind):
    assert Scaling.from_sample(np.eye(5, 3), kind).kind in SCALINGS


def test_unknown_kind():
    with pytest.raises(ParameterError, match=WRONG):
        Scaling.from_sample(np.eye(5, 3), "robust")


def test_statistics_do_not_depend_on_how_columns_are_cut(monkeypatch):
    sample = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    whole = Scaling.from_sample(sample, "standard")
    monkeypatch.setattr("biglp._sources.statistics.STATISTICS_BYTES", 8 * 50 * 2)
    cut = Scaling.from_sample(sample, "standard")
    np.testing.assert_allclose(cut.factor, whole.factor, rtol=1e-12)
    np.testing.assert_allclose(cut.offset, whole.offset, rtol=1e-12)


def test_arrays_are_all_there_is():
    rng = np.random.default_rng(0)
    sample = np.column_stack([rng.normal(size=500), np.exp(rng.normal(0, 3, 500))])
    counts = sparse.random(80, 300, 0.05, format="csr", random_state=0)
    for rows, kind in ((sample, "table"), (sample, "unit"), (counts, "text")):
        scaling = Scaling.from_sample(rows, kind)
        again = Scaling.from_arrays(kind, scaling.arrays())
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
            Scaling.from_sample(rows, kind).apply(rows)
        assert (before != rows).sum() == 0


def test_directions_that_are_asked_for():
    rows = np.random.default_rng(0).normal(size=(100, 12)).astype(np.float32)
    scaling = Scaling.from_sample(rows, "none")
    assert scaling.projected(rows, 0).projection is None
    assert scaling.projected(rows, 0, 5).apply(rows).shape == (100, 5)
    assert scaling.projected(rows, 0, 12).projection is None


def test_widths_below_the_normal_numbers_say_nothing():
    """One over such a width is infinite."""
    found = inverse(np.array([0.0, 5e-324, 1e-310, 2.0]))
    assert found.tolist() == [0.0, 0.0, 0.0, 0.5]


def test_denormal_numbers_are_scaled_without_overflow():
    rows = np.array([[1e-40, 2.0], [3e-40, 1.0]], dtype=np.float32)
    scaled = Scaling(factor=np.array([1e40, 1.0])).apply(rows)
    assert np.isfinite(scaled).all()
    np.testing.assert_array_equal(scaled[:, 1], rows[:, 1])
