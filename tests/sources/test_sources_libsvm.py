"""LIBSVM text: parsed in pieces, sparse all the way, counted from 0 or 1."""

from __future__ import annotations

import bz2

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import biglp._rows.libsvm as libsvm
from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows import as_source


@pytest.fixture(params=[20, 300, 8 << 20])
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(libsvm, "CHUNK_BYTES", request.param)
    return request.param


def write(path, text: str):
    path.write_text(text)
    return path


@pytest.mark.parametrize("zero_based", [True, False])
def test_base_is_found(tmp_path, chunk_bytes, zero_based):
    rows = sparse.random(60, 9, 0.4, random_state=0, format="csr")
    rows.data = np.round(rows.data * 64)
    rows = rows.tolil()
    rows[0, 0] = 1.0
    rows = rows.tocsr()
    dump_svmlight_file(rows, np.arange(60), str(tmp_path / "x.svm"), zero_based=zero_based)
    source = as_source(tmp_path / "x.svm")
    assert source.is_sparse
    assert source.encoding.zero_based == zero_based
    read = source.read(0, 60)
    assert sparse.issparse(read)
    np.testing.assert_array_equal(read.toarray()[:, :9], rows.toarray())


def test_model_says_how_features_are_counted(tmp_path, chunk_bytes):
    train = as_source(write(tmp_path / "a.libsvm", "1 0:1 4:2\n-1 1:3\n"))
    # Feature 0 does not occur here: alone, this file would look as if counted from 1.
    path = write(tmp_path / "b.libsvm", "1 1:5 2:6\n")
    np.testing.assert_array_equal(as_source(path).read(0, 1).toarray(), [[5, 6]])
    new = as_source(path, encoding=train.encoding)
    np.testing.assert_array_equal(new.read(0, 1).toarray(), [[0, 5, 6, 0, 0]])
    with pytest.raises(BadRowsError, match="has 8 features where 5 are expected"):
        as_source(write(tmp_path / "c.libsvm", "1 7:5\n"), encoding=train.encoding)
    one_based = as_source(path).encoding
    with pytest.raises(BadRowsError, match="has a feature 0, but its features were to be counted"):
        as_source(tmp_path / "a.libsvm", encoding=one_based)


def test_comments_empty_rows_and_packing(tmp_path, chunk_bytes):
    text = b"# made by hand\n1 1:2 3:4 # a comment\n\n2\n3 2:0.5\n4 3:1"
    (tmp_path / "x.svmlight.bz2").write_bytes(bz2.compress(text))
    source = as_source(tmp_path / "x.svmlight.bz2", dtype="float32")
    assert source.dtype == np.float32
    expected = [[2, 0, 4], [0, 0, 0], [0, 0.5, 0], [0, 0, 1]]
    np.testing.assert_array_equal(source.read(0, 4).toarray(), expected)
    np.testing.assert_array_equal(source.take(np.array([1, 3])).toarray(), [[0, 0, 0], [0, 0, 1]])


def test_given_width(tmp_path):
    source = as_source(write(tmp_path / "x.svm", "1 2:1\n"), n_features=4)
    np.testing.assert_array_equal(source.read(0, 1).toarray(), [[0, 1, 0, 0]])


@pytest.mark.parametrize("bad", ["1 2:x", "1 2", "1 3:1 2:1", "cat 1:1"])
def test_bad_line_is_named(tmp_path, chunk_bytes, bad):
    path = write(tmp_path / "x.svm", "1 1:1 2:2\n" * 30 + bad + "\n" + "1 1:1\n" * 30)
    with pytest.raises(BadRowsError, match=r"x\.svm, line 31: .*Repair or delete"):
        as_source(path)


def test_nothing_to_use(tmp_path):
    with pytest.raises(BadRowsError, match="has no rows"):
        as_source(write(tmp_path / "x.svm", "# nothing\n"))
    with pytest.raises(BadRowsError, match="has no features at all"):
        as_source(write(tmp_path / "x.svm", "1\n2\n"))
    with pytest.raises(ParameterError, match="label_column='y' means nothing"):
        as_source(write(tmp_path / "x.svm", "1 1:1\n"), label_column="y")


def test_conversion_writes_nothing_that_is_not_read(tmp_path):
    source = as_source(write(tmp_path / "x.svm", "1 1:1\n2 2:1\n"), cache=tmp_path / "kept")
    written = {path.name for path in source.folder.iterdir()}
    arrays = {"data.npy", "indices.npy", "indptr.npy", "width.npy"}
    assert written == {*arrays, *(f"{name}.sums" for name in arrays), "meta.json"}
