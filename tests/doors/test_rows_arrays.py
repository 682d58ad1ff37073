"""Arrays in files: several of them in one, shards of one, sparse ones; which are the rows."""

from __future__ import annotations

import json
import pickle
import random
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, LabelError, MissingExtraError, OutputError, ParameterError
from biglp._rows import InputFiles, as_source
from cli_tools import done, failed
from helpers import blobs
from label_files import read_labels


@pytest.fixture
def shards():
    return np.random.default_rng(0).normal(size=(500, 6)).astype(np.float16)


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
        elsewhere = pickle.loads(pickle.dumps(as_source(path)))
        write(path, emb=rows + 1)
        with pytest.raises(BadRowsError, match="changed while it was being worked on"):
            elsewhere.check_unchanged()

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


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """A k-NN graph and labels, also as files in the working folder."""
    monkeypatch.chdir(tmp_path)
    X, y, _ = blobs(n=200)
    found = kneighbors_graph(X, 8)
    sparse.save_npz("graph.npz", found)
    Path("labels.csv").write_text(
        "row,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(y) if label >= 0)
    )
    return found, y


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("compressed", [False, True])
def test_rows_are_those_of_the_matrix(tmp_path, kind, compressed):
    X = sparse.random(50, 9, 0.3, format=kind, random_state=0, dtype=np.float32)
    sparse.save_npz(tmp_path / "x.npz", X, compressed=compressed)
    source = as_source(tmp_path / "x.npz")
    assert (source.n_rows, source.n_features, source.dtype) == (50, 9, np.float32)
    np.testing.assert_array_equal(source.read(10, 37).toarray(), X.toarray()[10:37])
    np.testing.assert_array_equal(source.take(np.array([3, 44])).toarray(), X.toarray()[[3, 44]])
    assert InputFiles(str(tmp_path / "x.npz")).peek().n_rows == 50


def test_other_archives_are_explained(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones(3))
    (tmp_path / "y.npz").write_bytes(b"nothing")
    with pytest.raises(BadRowsError, match=r"no table of numbers; it has a \(3 float64\)"):
        as_source(tmp_path / "x.npz")
    with pytest.raises(BadRowsError, match=r"cannot be read as .npz: File is not a zip file"):
        as_source(tmp_path / "y.npz")
    np.savez(tmp_path / "z.npz", format=np.array("csr"), shape=np.array([3, 3]), data=np.ones(3))
    with pytest.raises(BadRowsError, match=r"z.npz is not a sparse matrix as scipy.sparse.save"):
        as_source(tmp_path / "z.npz")


def test_what_unpacking_takes_is_counted_where_it_is_done(tmp_path):
    X = np.zeros((40_000, 500), np.float32)
    np.savez_compressed(tmp_path / "x.npz", X=X, other=X[:9])
    first = as_source(tmp_path / "x.npz", cache=tmp_path / "cache")
    again = as_source(tmp_path / "x.npz", cache=tmp_path / "cache")
    assert (first.decoding_bytes, again.decoding_bytes) == (2 * X.nbytes, 0)


def test_what_does_not_fit_is_refused_before_it_is_unpacked(tmp_path):
    """The header of a file may say anything."""
    np.save(tmp_path / "X.npy", np.zeros((2, 2)))
    content = (tmp_path / "X.npy").read_bytes().replace(b"(2, 2), }", b"(1234567890123, 2), }")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", content)
    with pytest.raises((BadRowsError, OutputError), match=r"write the rows with|Make room"):
        as_source(tmp_path / "x.npz")


def test_it_must_be_unpacked(graph):
    with pytest.raises(ParameterError, match="cache='never' cannot be used"):
        as_source("graph.npz", cache="never")


def test_a_graph_on_the_command_line(graph):
    W, y = graph
    fit = ("fit", "graph.npz", "--factor", "precomputed", "--labels", "labels.csv", "-o", "out")
    done(*fit, "-q")
    expected = LowRankLabelPropagation(factor="precomputed").fit(W, y)
    np.testing.assert_array_equal(np.load("out/labels.npy"), expected.transduction_)
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["settings"]["ties"] == expected.report_["ties"]
    done("predict", "out/model.biglp", "graph.npz", "-o", "new.npy", "-q")
    np.testing.assert_array_equal(np.load("new.npy"), expected.predict(W))
    assert len(done("suggest", "out", "-n", "5").stdout.splitlines()) >= 5
    assert "200 rows" in done(*fit, "--dry-run", "--overwrite").stdout.replace("\xa0", " ")
    assert "too little" in failed(4, *fit, "--overwrite", "--memory", "20MB")


@pytest.fixture
def folder(tmp_path, shards):
    """Twelve shards, two of them empty, whose names are not in order as text."""
    bounds = [0, 0, 3, 100, 101, 180, 200, 260, 260, 300, 333, 400, 500]
    for number in range(12):
        np.save(tmp_path / f"emb_{number}.npy", shards[bounds[number] : bounds[number + 1]])
    return tmp_path


@pytest.mark.parametrize("named", ["{}", "{}/emb_*.npy", "{}/**/*.npy"])
def test_natural_order(folder, shards, named):
    source = as_source(named.format(folder))
    assert (source.n_rows, source.n_features, source.dtype) == (500, 6, np.float16)
    np.testing.assert_array_equal(source.read(0, 500), shards)
    chosen = np.array([0, 2, 3, 99, 259, 260, 499])
    np.testing.assert_array_equal(source.take(chosen), shards[chosen])
    assert source.take(np.empty(0, dtype=np.int64)).shape == (0, 6)
    assert len(source.stamps) == 12


def test_a_list_keeps_its_order(folder, shards):
    source = as_source([folder / "emb_11.npy", folder / "emb_3.npy"])
    np.testing.assert_array_equal(
        source.read(0, 101), np.concatenate([shards[400:], shards[100:101]])
    )


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


def test_no_rows_at_all(tmp_path):
    for number in range(2):
        np.save(tmp_path / f"{number}.npy", np.zeros((0, 4)))
    with pytest.raises(BadRowsError, match="none of these 2 files holds any rows"):
        as_source(tmp_path)


def test_a_shard_that_changes_is_noticed(folder):
    source = as_source(folder)
    elsewhere = pickle.loads(pickle.dumps(source))
    np.save(folder / "emb_11.npy", np.zeros((7, 6), np.float16))
    with pytest.raises(BadRowsError, match=r"emb_11.npy changed"):
        source.read(450, 500)
    with pytest.raises(BadRowsError, match=r"emb_11.npy has 7 rows and had 100"):
        elsewhere.read(450, 500)


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


def test_numbers_in_names_are_numbers(tmp_path):
    names = [
        "a/emb_2.npy",
        "a/emb_10.npy",
        "a/emb_10b.npy",
        "a/emb_010.npy",
        "a/x.npy",
        "a2/emb_1.npy",
        "a10/emb_1.npy",
    ]
    expected = ["a/emb_2.npy", "a/emb_010.npy", "a/emb_10.npy", "a/emb_10b.npy", *names[4:]]
    for name in random.Random(0).sample(names, len(names)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert InputFiles(tmp_path).names == tuple(str(tmp_path / name) for name in expected)


@pytest.mark.parametrize("kind", [".npy", ".parquet", ".csv"])
def test_folders_and_patterns_have_one_order(tmp_path, kind):
    for name in ("b_10", "b_9", "B_1", "b_100"):
        (tmp_path / f"{name}{kind}").touch()
    (tmp_path / "_SUCCESS").touch()
    expected = [str(tmp_path / f"{name}{kind}") for name in ("B_1", "b_9", "b_10", "b_100")]
    assert InputFiles(tmp_path).names == InputFiles(f"{tmp_path}/*{kind}").names == tuple(expected)


def test_arrays_inside_files(tmp_path):
    (tmp_path / "a.h5").touch()
    assert InputFiles(f"{tmp_path}/*.h5::x").names == (f"{tmp_path}/a.h5::x",)
    assert InputFiles(f"{tmp_path}::x").names == (f"{tmp_path}/a.h5::x",)
    (tmp_path / "b::c.npy").touch()  # a name may hold it, however odd
    assert InputFiles(tmp_path / "b::c.npy").names == (str(tmp_path / "b::c.npy"),)
    with pytest.raises(BadRowsError, match=r"there is no file .*c\.h5"):
        InputFiles(f"{tmp_path}/c.h5::x")
