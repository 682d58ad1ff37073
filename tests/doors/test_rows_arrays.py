"""Arrays in files (several in one, shards of one, sparse ones) and in Dask."""

import json
import os
import pickle
import random
import sys
import zipfile
from pathlib import Path

import dask
import dask.array as da
import h5py
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, LabelError, MissingExtraError, OutputError, ParameterError
from biglp._rows import InputFiles, as_source
from cli_tools import done, failed
from helpers import blobs, model
from label_files import read_labels

ENDINGS = (".npz", ".h5", ".zarr")
ROWS = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)


def write(path, **arrays):
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


@pytest.mark.parametrize("ending", ENDINGS)
def test_one_array_of_several_is_the_rows(tmp_path, ending):
    path = write(tmp_path / f"one{ending}", emb=ROWS, y=np.arange(40) % 3)
    source = as_source(path)
    np.testing.assert_array_equal(source.read(5, 30), ROWS[5:30])
    facts = InputFiles(path).peek()
    assert (facts.n_rows, facts.n_features, facts.dtype) == (40, 3, "float32")
    assert facts.size > 0
    path = write(tmp_path / f"a{ending}", a=ROWS, b=ROWS + 1)
    np.testing.assert_array_equal(as_source(f"{path}::b").read(0, 40), ROWS + 1)
    with pytest.raises(BadRowsError, match=r"several arrays .* a \(40 × 3 float32\), b .*::a"):
        as_source(path)
    with pytest.raises(BadRowsError, match=r"no array 'c'; it has a \(40 × 3 float32\), b"):
        as_source(f"{path}::c")
    shown = np.where(np.arange(40) % 3, np.arange(40) % 4, -1)
    path = write(tmp_path / f"X{ending}", X=ROWS, X_test=ROWS[:4], y=shown)
    assert as_source(path).n_rows == 40  # X is the rows
    np.testing.assert_array_equal(read_labels(f"{path}::y", 40), shown)
    np.testing.assert_array_equal(read_labels(path, 40, column="y"), shown)
    with pytest.raises(LabelError, match=r"has shape \(40, 3\)"):
        read_labels(path, 40, column="X")


@pytest.mark.parametrize("ending", ENDINGS)
def test_several_files_and_files_that_change(tmp_path, ending):
    for number, part in ((2, ROWS[:9]), (10, ROWS[9:])):
        write(tmp_path / f"part_{number}{ending}", emb=part, extra=part + 1)
    source = as_source(f"{tmp_path}/part_*{ending}::extra")
    np.testing.assert_array_equal(source.read(0, 40), ROWS + 1)
    np.testing.assert_array_equal(source.take(np.array([8, 9, 39])), (ROWS + 1)[[8, 9, 39]])
    write(tmp_path / f"part_11{ending}", emb=ROWS[:, :2])
    with pytest.raises(BadRowsError, match=r"11\S+ has 2 features a row and .* has 3"):
        as_source(f"{tmp_path}/*::emb")
    path = write(tmp_path / f"a{ending}", emb=ROWS)
    elsewhere = pickle.loads(pickle.dumps(as_source(path)))
    write(path, emb=ROWS + 1)
    with pytest.raises(BadRowsError, match="changed while it was being worked on"):
        elsewhere.check_unchanged()
    path = tmp_path / f"bad{ending}"
    if ending == ".zarr":
        path.mkdir()
        (path / "zarr.json").write_text("{")
    else:
        path.write_bytes(b"nothing")
    with pytest.raises(BadRowsError, match=r"cannot be read as (\.npz|HDF5|Zarr)"):
        as_source(path)


def test_folders_that_end_in_zarr_texts_as_labels_and_missing_libraries(tmp_path, monkeypatch):
    for name in "ab":
        write(tmp_path / f"{name}.zarr", emb=ROWS)
    assert InputFiles(tmp_path).files == (str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"))
    assert as_source(tmp_path).n_rows == 80
    texts = ["a", "", "b", "a"]
    for name in ("a.h5", "a.npz"):
        given = texts if name == "a.h5" else np.array(texts)
        write(tmp_path / name, y=given)
        assert read_labels(f"{tmp_path}/{name}::y", 4).tolist() == ["a", None, "b", "a"]
    for name, library, extra in (("a.h5::y", "h5py", "hdf5"), ("a.zarr", "zarr", "zarr")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtraError, match=rf'pip install "biglp\[{extra}\]"'):
            as_source(f"{tmp_path}/{name}")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_rows_are_those_of_the_matrix(tmp_path, kind):
    X = sparse.random(50, 9, 0.3, format=kind, random_state=0, dtype=np.float32)
    dense = X.toarray()
    for compressed in (False, True):
        sparse.save_npz(tmp_path / "x.npz", X, compressed=compressed)
        source = as_source(tmp_path / "x.npz")
        assert (source.n_rows, source.n_features, source.dtype) == (50, 9, np.float32)
        np.testing.assert_array_equal(source.read(10, 37).toarray(), dense[10:37])
        np.testing.assert_array_equal(source.take(np.array([3, 44])).toarray(), dense[[3, 44]])
    assert InputFiles(str(tmp_path / "x.npz")).peek().n_rows == 50
    sparse.save_npz(tmp_path / "y.npz", X)
    both = as_source(tmp_path)
    assert both.is_sparse
    np.testing.assert_array_equal(both.read(40, 60).toarray(), np.vstack([dense[40:], dense[:10]]))
    np.savez(tmp_path / "z.npz", np.ones((3, 9)))
    with pytest.raises(BadRowsError, match=r"x.npz holds a sparse matrix and .*z.npz a dense"):
        as_source(tmp_path)
    with pytest.raises(ParameterError, match="cache='never' cannot be used"):
        as_source(tmp_path / "x.npz", cache="never")


def test_archives_that_cannot_be_used(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.ones(3))
    with pytest.raises(BadRowsError, match=r"no table of numbers; it has a \(3 float64\)"):
        as_source(path)
    np.savez(path, format=np.array("csr"), shape=np.array([3, 3]), data=np.ones(3))
    with pytest.raises(BadRowsError, match=r"x.npz is not a sparse matrix as scipy.sparse.save"):
        as_source(path)
    # The header of a file may say anything; it is refused before it is unpacked.
    np.save(tmp_path / "X.npy", np.zeros((2, 2)))
    content = (tmp_path / "X.npy").read_bytes().replace(b"(2, 2), }", b"(1234567890123, 2), }")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", content)
    with pytest.raises((BadRowsError, OutputError), match=r"write the rows with|Make room"):
        as_source(path)
    X = np.zeros((40_000, 500), np.float32)
    np.savez_compressed(path, X=X, other=X[:9])
    first, again = (as_source(path, cache=tmp_path / "cache") for _ in range(2))
    assert (first.decoding_bytes, again.decoding_bytes) == (2 * X.nbytes, 0)


def test_a_graph_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, _ = blobs(n=200)
    W = kneighbors_graph(X, 8)
    sparse.save_npz("graph.npz", W)
    lines = [f"{i},{label}\n" for i, label in enumerate(y) if label >= 0]
    Path("labels.csv").write_text("row,label\n" + "".join(lines))
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


# Shards: .npy files whose rows follow each other --------------------------------------------------

SHARDS = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float16)


@pytest.fixture
def folder(tmp_path):
    bounds = [0, 0, 3, 100, 101, 180, 200, 260, 260, 300, 333, 400, 500]
    for number in range(12):
        np.save(tmp_path / f"emb_{number}.npy", SHARDS[bounds[number] : bounds[number + 1]])
    return tmp_path


@pytest.mark.parametrize("named", ["{}", "{}/emb_*.npy", "{}/**/*.npy"])
def test_shards_in_natural_order(folder, named):
    source = as_source(named.format(folder))
    assert (source.n_rows, source.n_features, source.dtype) == (500, 6, np.float16)
    np.testing.assert_array_equal(source.read(0, 500), SHARDS)
    chosen = np.array([0, 2, 3, 99, 259, 260, 499])
    np.testing.assert_array_equal(source.take(chosen), SHARDS[chosen])
    assert source.take(np.empty(0, dtype=np.int64)).shape == (0, 6)
    assert len(source.stamps) == 12
    listed = as_source([folder / "emb_11.npy", folder / "emb_3.npy"])  # a list keeps its order
    np.testing.assert_array_equal(listed.read(0, 101), [*SHARDS[400:], SHARDS[100]])


def test_shards_that_do_not_fit_or_change(folder):
    source = as_source(folder)
    elsewhere = pickle.loads(pickle.dumps(source))
    np.save(folder / "emb_11.npy", np.zeros((7, 6), np.float16))
    with pytest.raises(BadRowsError, match=r"emb_11.npy changed"):
        source.read(450, 500)
    with pytest.raises(BadRowsError, match=r"emb_11.npy has 7 rows and had 100"):
        elsewhere.read(450, 500)
    np.save(folder / "emb_7.npy", np.zeros((3, 5)))
    with pytest.raises(BadRowsError, match=r"emb_7.npy has 5 features a row and .*emb_0.npy has 6"):
        as_source(folder)
    (folder / "meta.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadRowsError, match=r"12 files of rows .* 1 of tables .*--metadata"):
        as_source(folder)
    with pytest.raises(BadRowsError, match="none of these 2 files holds any rows"):
        as_source([folder / "emb_0.npy"] * 2)
    with pytest.raises(ParameterError, match=r"label_column='y' means nothing .*--metadata"):
        as_source(folder / "emb_1.npy", label_column="y")
    with pytest.raises(ParameterError, match=r"columns=.* means nothing for"):
        as_source(folder / "emb_1.npy", columns=["a"])


def test_names_of_files(tmp_path):
    names = ["a/emb_2.npy", "a/emb_010.npy", "a/emb_10.npy", "a/emb_10b.npy", "a/x.npy"]
    names += ["a2/emb_1.npy", "a10/emb_1.npy"]  # numbers in names are numbers
    names += ["c/B_1.csv", "c/b_9.csv", "c/b_10.csv", "h5/a.h5", "b::c.npy", "c/_SUCCESS"]
    for name in random.Random(0).sample(names, len(names)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    def found(named):
        return [os.path.relpath(name, tmp_path) for name in InputFiles(f"{tmp_path}/{named}").names]

    assert found("a*/**/*.npy") == names[:7]
    assert found("c") == found("c/*.csv") == names[7:10]
    assert found("h5/*.h5::x") == found("h5::x") == ["h5/a.h5::x"]  # an array inside
    assert found("b::c.npy") == ["b::c.npy"]  # a name may hold it, however odd
    with pytest.raises(BadRowsError, match=r"there is no file .*c\.h5"):
        found("c.h5::x")


# Dask arrays and data frames: on threads, and where they live on the workers of a cluster ---------


pytest.importorskip("distributed")


pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.UnlikeLabelsWarning")


X, Y, _ = blobs(n=1000, features=6, labelled=30, dtype=np.float32)


SETTINGS = {"factor": "anchors", "landmarks": "kmeans-full", "n_landmarks": 12}


@pytest.fixture(scope="module")
def client():
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def expected():
    return model(**SETTINGS).fit(X, Y).label_distributions_


def test_rows_are_those_of_the_array():
    source = as_source(da.from_array(X, chunks=(170, 4)))
    assert (source.n_rows, source.n_features, source.dtype) == (1000, 6, X.dtype)
    for start, stop in ((0, 1000), (169, 171), (170, 340), (999, 1000)):
        assert np.array_equal(source.read(start, stop), X[start:stop])
    chosen = np.array([0, 3, 169, 170, 998])
    assert np.array_equal(source.take(chosen), X[chosen])
    rows = da.from_array(X, chunks=(300, 6))
    rows = rows[rows[:, 0] > 0]  # chunks of unknown length are counted
    with dask.config.set(scheduler="sync"):
        assert as_source(rows).n_rows == (X[:, 0] > 0).sum()
    with pytest.raises(BadRowsError, match="give a dask array or a dask data frame"):
        as_source(dask.delayed(X))


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_without_a_cluster(engine, expected):
    rows = da.from_array(X, chunks=(300, 6))
    with dask.config.set(scheduler="threads"):
        fitted = model(**SETTINGS, engine=engine).fit(rows, Y)
    assert fitted.label_distributions_.tobytes() == expected.tobytes()
    assert fitted.predict(rows[:10]).shape == (10,)


@pytest.mark.parametrize("persisted", [True, False])
def test_on_the_workers_that_hold_it(client, expected, persisted):
    with client.as_current():
        rows = da.from_array(X, chunks=(250, 6))
        rows = rows.persist() if persisted else rows + 0
        fitted = model(**SETTINGS, engine=client).fit(rows, Y)
    assert fitted.label_distributions_.tobytes() == expected.tobytes()


def test_data_frames(client, expected):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with client.as_current():
        fitted = model(**SETTINGS, engine=client).fit(dd.from_pandas(frame, npartitions=3), Y)
    assert fitted.label_distributions_.tobytes() == expected.tobytes()
    frame["g"] = "text"
    with pytest.raises(BadRowsError, match="has other values in g"):
        as_source(dd.from_pandas(frame, npartitions=3))
