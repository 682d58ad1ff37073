"""A new engine is one file and one line: here the file is this test."""

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import ParameterError
from biglp._engines import ENGINES, LocalEngine, make_engine
from cli_tools import done, failed


class BackwardsEngine(LocalEngine):
    also_accepted = ("a range",)
    n_made = 0

    def __init__(self, steps=None):
        self.steps = steps
        type(self).n_made += 1

    @classmethod
    def accepts(cls, value):
        return isinstance(value, range)

    def results(self, func, items):
        results = [func(item) for item in reversed(items)]
        yield from reversed(results)


@pytest.fixture
def toy():
    BackwardsEngine.n_made = 0
    ENGINES["toy"] = BackwardsEngine
    yield BackwardsEngine
    del ENGINES["toy"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 2000)
    rows = (rng.normal(size=(2000, 6)) + 2 * truth[:, None]).astype(np.float32)
    return rows, np.where(np.arange(2000) < 60, truth, -1)


def test_through_the_estimator_and_the_command_line(toy, data, tmp_path):
    labels = [LowRankLabelPropagation(engine=name).fit(*data) for name in ("toy", "serial")]
    assert toy.n_made == 1
    np.testing.assert_array_equal(labels[0].transduction_, labels[1].transduction_)
    np.save(tmp_path / "rows.npy", data[0])
    np.save(tmp_path / "labels.npy", data[1])
    files = (tmp_path / "rows.npy", "--labels", tmp_path / "labels.npy")
    for name in ("toy", "serial"):
        done("fit", *files, "-o", tmp_path / name, "--engine", name, "-q")
    assert toy.n_made == 2
    found = [np.load(tmp_path / name / "labels.npy") for name in ("toy", "serial")]
    np.testing.assert_array_equal(*found)
    assert make_engine(range(3)).steps == range(3)
    with pytest.raises(ParameterError, match=r"'dask', 'toy', an mpi4py .*, a range or an Engine"):
        make_engine("spark")
    del ENGINES["toy"]  # without its line it is not known
    assert "toy" in failed(2, "fit", *files, "-o", tmp_path / "out", "--engine", "toy")
    ENGINES["toy"] = toy


def test_an_engine_of_another_package_is_found_by_its_entry_point(tmp_path, monkeypatch, data):
    (tmp_path / "elsewhere.py").write_text(
        "from biglp._engines import SerialEngine\n\n\nclass Engine(SerialEngine):\n    pass\n"
    )
    facts = tmp_path / "elsewhere-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[biglp.engines]\nelsewhere = elsewhere:Engine\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert type(make_engine("elsewhere")).__module__ == "elsewhere"
        labels = LowRankLabelPropagation(engine="elsewhere").fit(*data).transduction_
        serial = LowRankLabelPropagation(engine="serial").fit(*data).transduction_
        np.testing.assert_array_equal(labels, serial)
    finally:
        ENGINES.pop("elsewhere", None)
