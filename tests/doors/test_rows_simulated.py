"""Made-up rows: the same anywhere, with the structure that was asked for."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biglp._core import ParameterError
from biglp._rows import as_source
from cli_tools import done

SOURCE = as_source("sim:5000x37,classes=3,clusters=2,labels=20,seed=3")


ROWS = SOURCE.read(0, 5000)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 4999), st.integers(1, 5000))
def test_any_block_is_the_same(start, length):
    stop = min(start + length, 5000)
    np.testing.assert_array_equal(SOURCE.read(start, stop), ROWS[start:stop])
    np.testing.assert_array_equal(SOURCE.truth(start, stop), SOURCE.truth(0, 5000)[start:stop])
    np.testing.assert_array_equal(SOURCE.labels(start, stop), SOURCE.labels(0, 5000)[start:stop])


def test_take_and_pickle():
    indices = np.array([0, 1, 2, 17, 900, 901, 4999])
    np.testing.assert_array_equal(SOURCE.take(indices), ROWS[indices])
    assert SOURCE.take(np.array([], dtype=int)).shape == (0, 37)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(SOURCE)).read(5, 9), ROWS[5:9])


def test_labels_are_as_many_as_asked_for():
    labels, truth = SOURCE.labels(0, 5000), SOURCE.truth(0, 5000)
    chosen = labels >= 0
    np.testing.assert_array_equal(np.bincount(labels[chosen]), [20, 20, 20])
    np.testing.assert_array_equal(labels[chosen], truth[chosen])
    few = as_source("sim:10x2,labels=100")
    np.testing.assert_array_equal(few.labels(0, 10), few.truth(0, 10))


def test_descriptions():
    for spec, shape in {
        "sim:100x3": (100, 3), "sim:2Mx10": (2_000_000, 10), "sim:1e3X5": (1000, 5),
        "sim:1_000x5,seed=2": (1000, 5), "sim:1.5Kx2": (1500, 2),
    }.items():  # fmt: skip
        source = as_source(spec)
        assert (source.n_rows, source.n_features) == shape
    for rest in (
        "", "100", "0x5", "10x5x5", "10x5,colour=2", "10x5,seed=1,seed=2", "10x5,noise=-1",
        "10x5,classes=0", "10.5x3", "10x5,separation=wide",
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="write sim:ROWSxFEATURES, for example"):
            as_source(f"sim:{rest}")


def test_written_files_hold_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    description = "sim:200000x7,classes=3,seed=1,labels=5"  # more than a piece of the file
    options = ("--classes", 3, "--seed", 1, "--labels-per-class", 5, "-o", "s.npy", "-q")
    done("simulate", "200K", 7, *options)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"s.labels.npy", "s.npy", "s.truth.npy"}
    source = as_source(description)
    np.testing.assert_array_equal(np.load("s.npy"), source.read(0, 200_000))
    np.testing.assert_array_equal(np.load("s.truth.npy"), source.truth(0, 200_000))
    np.testing.assert_array_equal(np.load("s.labels.npy"), source.labels(0, 200_000))
    np.testing.assert_array_equal(as_source(tmp_path / "s.npy").read(3, 9), source.read(3, 9))
