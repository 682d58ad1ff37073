"""Rows are the same bits, and get the same labels, whatever kind of file they are in."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from array_files import KINDS, write
from biglp import LowRankLabelPropagation
from biglp._rows import as_source
from helpers import blobs

DTYPES = ("float16", "float32", "float64", "int8", "int32", "uint16")


@st.composite
def rows_and_cuts(draw):
    """Rows of any width and type, where shards end, and how long chunks are."""
    n_rows, width = draw(st.integers(1, 40)), draw(st.integers(1, 9))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    rows = (rng.normal(size=(n_rows, width)) * 50).astype(np.int64).astype(dtype)
    if dtype.kind == "f":
        rows = (rng.normal(size=(n_rows, width)) * 50).astype(dtype)
    cuts = draw(st.lists(st.integers(0, n_rows), max_size=12))
    return rows, cuts, draw(st.integers(1, n_rows))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows_and_cuts(), st.data())
def test_any_cut_gives_the_same_bits(made, data):
    rows, cuts, chunk = made
    n_rows = len(rows)
    start = data.draw(st.integers(0, n_rows - 1))
    stop = data.draw(st.integers(start + 1, n_rows))
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, n_rows - 1), min_size=1))))
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            name = write(kind, rows, Path(folder) / kind, cuts, chunk)
            # Text is float64 by default; what was written as fewer digits is exact there.
            expected = rows.astype(np.float64) if kind.startswith("jsonl") else rows
            for cache in ("auto", "never") if kind.endswith("list") else ("auto",):
                source = as_source(name, cache=cache)
                for again in (source, pickle.loads(pickle.dumps(source))):
                    same_bits(again.read(0, n_rows), expected)
                    same_bits(again.read(start, stop), expected[start:stop])
                    same_bits(again.take(chosen), expected[chosen])


def same_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_the_same_labels(tmp_path, dtype):
    X, y, _ = blobs(n=300, features=6, dtype=dtype)
    expected = None
    for kind in KINDS:
        if kind.startswith("jsonl") and dtype == np.float16:
            continue  # text is float64, and so is the arithmetic
        name = write(kind, X, tmp_path / kind, [40, 41, 250], chunk=77)
        model = LowRankLabelPropagation(random_state=0, memory="300MB").fit(name, y)
        found = model.predict_proba(name)
        if expected is None:
            expected = model.transduction_, found
        np.testing.assert_array_equal(model.transduction_, expected[0], err_msg=kind)
        assert found.tobytes() == expected[1].tobytes(), kind


def test_a_model_of_one_kind_reads_the_others(tmp_path):
    X, y, _ = blobs(n=200, features=4)
    names = {kind: write(kind, X, tmp_path / kind, [90], 50) for kind in ("npy", "list", "zarr")}
    for fitted_on in names:
        model = LowRankLabelPropagation(random_state=0).fit(names[fitted_on], y)
        found = [model.predict_proba(name).tobytes() for name in names.values()]
        assert len(set(found)) == 1
