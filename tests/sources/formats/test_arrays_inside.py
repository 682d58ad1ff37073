"""Arrays inside .npz and HDF5 files and Zarr folders: which are the rows, which the labels."""

from __future__ import annotations

import sys

import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse

from biglp._core.errors import BadRowsError, LabelError, MissingExtraError, ParameterError
from biglp._rows import InputFiles, as_source
from label_files import read_labels

ENDINGS = (".npz", ".h5", ".zarr")


def write(path, **arrays):
    """Write named arrays in the format that the name ends in."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    else:
        group = zarr.open_group(path, mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=np.asarray(array), chunks=(7, *array.shape[1:]))
    return path


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)


@pytest.mark.parametrize("ending", ENDINGS)
class TestEach:
    def test_the_only_table_is_taken(self, tmp_path, rows, ending):
        path = write(tmp_path / f"a{ending}", emb=rows, y=np.arange(40) % 3)
        np.testing.assert_array_equal(as_source(path).read(5, 30), rows[5:30])
        facts = InputFiles(path).peek()
        assert (facts.n_rows, facts.n_features, facts.dtype) == (40, 3, "float32")
        assert facts.size > 0

    def test_an_array_is_chosen_by_name(self, tmp_path, rows, ending):
        path = write(tmp_path / f"a{ending}", a=rows, b=rows + 1)
        np.testing.assert_array_equal(as_source(f"{path}::b").read(0, 40), rows + 1)
        np.testing.assert_array_equal(as_source(f"{path}::a").read(0, 40), rows)
        with pytest.raises(BadRowsError, match=r"several arrays .* a \(40 × 3 float32\), b .*::a"):
            as_source(path)
        with pytest.raises(BadRowsError, match=r"no array 'c'; it has a \(40 × 3 float32\), b"):
            as_source(f"{path}::c")

    def test_x_is_the_rows(self, tmp_path, rows, ending):
        path = write(tmp_path / f"a{ending}", X=rows, X_test=rows[:4])
        assert as_source(path).n_rows == 40

    def test_one_dimension_is_refused(self, tmp_path, rows, ending):
        path = write(tmp_path / f"a{ending}", y=rows[:, 0])
        with pytest.raises(BadRowsError, match=r"no table of numbers; it has y \(40 float32\)"):
            as_source(path)
        with pytest.raises(BadRowsError, match="must be two-dimensional"):
            as_source(f"{path}::y")

    def test_labels(self, tmp_path, rows, ending):
        shown = np.where(np.arange(40) % 3, np.arange(40) % 4, -1)
        path = write(tmp_path / f"a{ending}", X=rows, y=shown)
        np.testing.assert_array_equal(read_labels(f"{path}::y", 40), shown)
        np.testing.assert_array_equal(read_labels(path, 40, column="y"), shown)
        with pytest.raises(LabelError, match=r"has shape \(40, 3\)"):
            read_labels(path, 40, column="X")

    def test_several_files(self, tmp_path, rows, ending):
        for number, part in ((2, rows[:9]), (10, rows[9:])):
            write(tmp_path / f"part_{number}{ending}", emb=part, extra=part + 1)
        source = as_source(f"{tmp_path}/part_*{ending}::extra")
        np.testing.assert_array_equal(source.read(0, 40), rows + 1)
        np.testing.assert_array_equal(source.take(np.array([8, 9, 39])), (rows + 1)[[8, 9, 39]])

    def test_another_width_is_named(self, tmp_path, rows, ending):
        write(tmp_path / f"1{ending}", emb=rows)
        write(tmp_path / f"2{ending}", emb=rows[:, :2])
        with pytest.raises(BadRowsError, match=rf"2\{ending} has 2 features a row and .* has 3"):
            as_source(tmp_path)

    def test_what_was_written_again_is_other_rows(self, tmp_path, rows, ending):
        path = write(tmp_path / f"a{ending}", emb=rows)
        before = as_source(path).fingerprint()
        write(path, emb=rows + 1)
        assert as_source(path).fingerprint() != before

    def test_a_damaged_file(self, tmp_path, ending):
        path = tmp_path / f"a{ending}"
        if ending == ".zarr":
            path.mkdir()
            (path / "zarr.json").write_text("{")
        else:
            path.write_bytes(b"nothing")
        with pytest.raises(BadRowsError, match=r"cannot be read as (\.npz|HDF5|Zarr)"):
            as_source(path)


def test_a_folder_that_ends_in_zarr_is_one_file(tmp_path, rows):
    write(tmp_path / "a.zarr", emb=rows)
    write(tmp_path / "b.zarr", emb=rows)
    assert InputFiles(tmp_path).files == (str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"))
    assert as_source(tmp_path).n_rows == 80


def test_texts_as_labels(tmp_path):
    texts = ["a", "", "b", "a"]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["y"] = texts
    assert read_labels(f"{tmp_path}/a.h5::y", 4).tolist() == ["a", None, "b", "a"]
    np.savez(tmp_path / "a.npz", y=np.array(texts))
    assert read_labels(f"{tmp_path}/a.npz::y", 4).tolist() == ["a", None, "b", "a"]


def test_sparse_matrices_in_several_files(tmp_path):
    matrix = sparse.random(60, 9, 0.3, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "m_2.npz", matrix[:20])
    sparse.save_npz(tmp_path / "m_10.npz", matrix[20:].tocsc())
    source = as_source(tmp_path)
    assert source.is_sparse
    np.testing.assert_array_equal(source.read(15, 50).toarray(), matrix[15:50].toarray())
    np.savez(tmp_path / "m_11.npz", np.ones((3, 9)))
    with pytest.raises(BadRowsError, match=r"m_2.npz holds a sparse matrix and .*m_11.npz a dense"):
        as_source(tmp_path)


def test_what_means_nothing_is_refused(tmp_path, rows):
    path = write(tmp_path / "a.h5", emb=rows)
    with pytest.raises(ParameterError, match=r"columns=.* means nothing for"):
        as_source(path, columns=["a"])
    np.save(tmp_path / "a.npy", rows)
    with pytest.raises(ParameterError, match=r"label_column='y' means nothing .*--metadata"):
        as_source(tmp_path / "a.npy", label_column="y")


@pytest.mark.parametrize(("ending", "extra"), [(".h5", "hdf5"), (".zarr", "zarr")])
def test_without_the_library(tmp_path, rows, monkeypatch, ending, extra):
    path = write(tmp_path / f"a{ending}", emb=rows)
    monkeypatch.setitem(sys.modules, "h5py" if extra == "hdf5" else "zarr", None)
    with pytest.raises(MissingExtraError, match=rf'pip install "biglp\[{extra}\]"'):
        as_source(path)
