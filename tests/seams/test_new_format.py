"""A new format is one class and one line: it works everywhere at once."""

import json

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, LabelError
from biglp._rows import Format, InputFiles, as_source, register, unregister
from cli_tools import done
from helpers import blobs
from label_files import read_labels


class ToyFormat(Format):
    name = "toy"

    def open(self, files, options):
        options.refuse(files[0], "columns", "label_column", "drop", "categorical", "dtype")
        source = as_source(np.loadtxt(files[0], delimiter="|", ndmin=2))
        source.name = files[0]
        return source


@pytest.fixture
def _toy():
    register("toy", ToyFormat(), "rows", ".toy")
    yield
    unregister("toy")


@pytest.fixture
def toy(tmp_path, _toy):
    X, y, _ = blobs(n=400, classes=2, features=3, labelled=20)
    np.savetxt(tmp_path / "x.toy", X, delimiter="|", fmt="%.17g")
    np.save(tmp_path / "labels.npy", y)
    return y, tmp_path / "x.toy"


def test_estimator_and_command_line(toy, tmp_path):
    y, path = toy
    from_file = LowRankLabelPropagation(random_state=0).fit(path, y)
    expected = LowRankLabelPropagation(random_state=0).fit(np.loadtxt(path, delimiter="|"), y)
    np.testing.assert_array_equal(from_file.transduction_, expected.transduction_)
    assert as_source(path).name == str(path)
    labels = tmp_path / "labels.npy"
    done("fit", path, "--labels", labels, "-o", tmp_path / "out", "--quiet")
    found = np.load(tmp_path / "out" / "labels.npy")
    np.testing.assert_array_equal(found, expected.transduction_)
    looked = json.loads(done("inspect", path, "--labels", labels, "--json").output)
    assert (looked["format"], looked["rows"], looked["features"]) == ("toy", 400, 3)
    assert looked["size"] == path.stat().st_size
    model = tmp_path / "out" / "model.biglp"
    done("predict", model, path, "-o", tmp_path / "again", "--quiet")


def test_what_it_does_not_offer_is_refused(toy, tmp_path):
    _, path = toy
    assert not InputFiles(str(path)).format.holds_labels
    with pytest.raises(LabelError, match=r"labels cannot be read from files ending in '\.toy'"):
        read_labels(path, 400)
    with pytest.raises(BadRowsError, match=r"'\.toy' cannot be read several at a time"):
        as_source([path, path])
    (tmp_path / "x.xyz").touch()
    with pytest.raises(BadRowsError, match=r"use \.npy, .*\.toy \(one file\)"):
        as_source(tmp_path / "x.xyz")
    unregister("toy")
    with pytest.raises(BadRowsError, match=r"files ending in '\.toy' cannot be read"):
        as_source(path)
    register("toy", ToyFormat(), "rows", ".toy")
