"""Sparse matrices in .npz files, as rows and as a graph."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from biglp import LowRankLabelPropagation
from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows import InputFiles, as_source
from cli_tools import done, failed
from helpers import blobs


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
