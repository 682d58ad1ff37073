"""Where labels are is known from the format, not from one of its endings."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pytest

from biglp._core.errors import ParameterError
from biglp._jobs.inputs import Inputs, label_input

TEXT = b"0 1:1 2:2\n1 1:3\n-1 2:5\n"


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("ending", [".libsvm", ".svm", ".svmlight", ".svml", ".SVM"])
def test_every_libsvm_file_holds_labels(tmp_path, ending, packing):
    path = tmp_path / f"x{ending}{packing}"
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packing]
    path.write_bytes(pack(TEXT))
    inputs = Inputs((str(path),))
    assert inputs.holds_labels
    assert not inputs.is_table
    labels = label_input(inputs, None, None).read(None)
    assert (labels.n_rows, labels.rows.tolist(), labels.classes.tolist()) == (3, [0, 1], [0, 1])


def test_other_inputs(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert Inputs(("sim:100x3",)).holds_labels
    for name in ("x.npy", "x.csv"):
        inputs = Inputs((str(tmp_path / name),))
        assert not inputs.holds_labels
        with pytest.raises(ParameterError, match="nothing says where the labels"):
            label_input(inputs, None, None)
    assert Inputs((str(tmp_path / "x.csv"),)).is_table


def test_labels_are_read_once(tmp_path, monkeypatch):
    import biglp._sources.formats.libsvm as libsvm

    (tmp_path / "x.svm").write_bytes(TEXT)
    opened, plain = [], libsvm.open_text
    monkeypatch.setattr(libsvm, "open_text", lambda path: opened.append(path) or plain(path))
    label_input(Inputs((str(tmp_path / "x.svm"),)), None, None).read(None)
    assert len(opened) == 1
