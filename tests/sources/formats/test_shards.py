"""Rows in several .npy files, read as one source."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from biglp._core.errors import BadRowsError, LabelError
from biglp._rows import InputFiles, as_source
from biglp._rows import shards as module
from label_files import read_labels


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(500, 6)).astype(np.float16)


@pytest.fixture
def folder(tmp_path, rows):
    """Twelve shards, two of them empty, whose names are not in order as text."""
    bounds = [0, 0, 3, 100, 101, 180, 200, 260, 260, 300, 333, 400, 500]
    for number in range(12):
        np.save(tmp_path / f"emb_{number}.npy", rows[bounds[number] : bounds[number + 1]])
    return tmp_path


@pytest.mark.parametrize("named", ["{}", "{}/emb_*.npy", "{}/**/*.npy"])
def test_natural_order(folder, rows, named):
    source = as_source(named.format(folder))
    assert (source.n_rows, source.n_features, source.dtype) == (500, 6, np.float16)
    np.testing.assert_array_equal(source.read(0, 500), rows)
    chosen = np.array([0, 2, 3, 99, 259, 260, 499])
    np.testing.assert_array_equal(source.take(chosen), rows[chosen])
    assert source.take(np.empty(0, dtype=np.int64)).shape == (0, 6)
    assert len(source.stamps) == 12


def test_a_list_keeps_its_order(folder, rows):
    source = as_source([folder / "emb_11.npy", folder / "emb_3.npy"])
    np.testing.assert_array_equal(source.read(0, 101), np.concatenate([rows[400:], rows[100:101]]))


def test_the_type_that_holds_all(tmp_path):
    parts = [np.ones((2, 3), np.float16), np.full((1, 3), 70_000, np.int32), np.zeros((1, 3), "u1")]
    for number, part in enumerate(parts):
        np.save(tmp_path / f"{number}.npy", part)
    source = as_source(tmp_path)
    expected = np.concatenate(parts)
    assert source.dtype == expected.dtype == np.float64
    np.testing.assert_array_equal(source.read(0, 4), expected)
    assert source.read(0, 1).dtype == source.take(np.array([0])).dtype == np.float64
    assert InputFiles(tmp_path).peek().n_rows == 4


def test_few_files_are_open_at_once(folder, rows, monkeypatch):
    monkeypatch.setattr(module, "OPEN_SHARDS", 2)
    source = as_source(folder)
    for _ in range(2):
        np.testing.assert_array_equal(source.read(0, 500), rows)
        assert len(source._opened) == 2


def test_it_is_small_when_sent(tmp_path):
    for number in range(300):
        np.save(tmp_path / f"shard_{number:05d}.npy", np.zeros((2, 4), np.float32))
    packed = pickle.dumps(as_source(tmp_path))
    assert len(packed) < 300 * (len(str(tmp_path)) + 60)
    assert pickle.loads(packed).read(299, 301).shape == (2, 4)


def test_another_width_is_named(folder):
    np.save(folder / "emb_7.npy", np.zeros((3, 5)))
    with pytest.raises(BadRowsError, match=r"emb_7.npy has 5 features a row and .*emb_0.npy has 6"):
        as_source(folder)


def test_one_dimension_is_refused(folder):
    np.save(folder / "emb_4.npy", np.zeros(3))
    with pytest.raises(BadRowsError, match=r"two-dimensional.*emb_4.npy has shape \(3,\)"):
        as_source(folder)


def test_no_rows_at_all(tmp_path):
    for number in range(2):
        np.save(tmp_path / f"{number}.npy", np.zeros((0, 4)))
    with pytest.raises(BadRowsError, match="none of these 2 files holds any rows"):
        as_source(tmp_path)


def test_a_shard_that_changes_is_noticed(folder):
    source = as_source(folder)
    before = source.fingerprint()
    elsewhere = pickle.loads(pickle.dumps(source))
    np.save(folder / "emb_11.npy", np.zeros((7, 6), np.float16))
    with pytest.raises(BadRowsError, match=r"emb_11.npy changed"):
        source.read(450, 500)
    with pytest.raises(BadRowsError, match=r"emb_11.npy has 7 rows and had 100"):
        elsewhere.read(450, 500)
    assert as_source(folder).fingerprint() != before


def test_missing_values_are_filled(tmp_path):
    np.save(tmp_path / "1.npy", np.array([[1.0], [np.nan]]))
    np.save(tmp_path / "2.npy", np.array([[3.0]]))
    source = as_source(tmp_path, missing="mean")
    np.testing.assert_array_equal(source.read(0, 3), [[1], [2], [3]])


def test_labels_in_shards(tmp_path):
    for number, part in enumerate(([0, -1], [], [1, 1, 2])):
        np.save(tmp_path / f"y_{number}.npy", np.array(part, dtype=np.int64))
    np.testing.assert_array_equal(read_labels(tmp_path / "y_*.npy", 5), [0, -1, 1, 1, 2])
    with pytest.raises(LabelError, match="has 5 labels, but there are 6 rows"):
        read_labels(tmp_path / "y_*.npy", 6)


def test_a_folder_of_rows_and_tables(folder):
    (folder / "meta.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadRowsError, match=r"12 files of rows .* 1 of tables .*--metadata"):
        as_source(folder)
