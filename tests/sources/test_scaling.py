"""Kinds of scaling, and what is learnt from a sample."""

from __future__ import annotations

import numpy as np
import pytest

from biglp._core.errors import ParameterError
from biglp._sources import Scaling
from biglp._sources.scaling import SCALINGS

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
