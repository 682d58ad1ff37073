"""A map of the rows: near rows near each other, the same on every engine, resumed like answers."""

import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import BigLPWarning
from biglp._output import NpySink
from biglp._output.table import MapSink
from cli_tools import done
from helpers import blobs, rows_in_a_block

COLUMNS = ["row", "id", "x", "y", "label", "confidence", "doubt"]
FIT = ("fit", "X.npy", "--labels", "y.npy", "--map", "-k", 40, "-q")
pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.fixture
def truth(here):
    X, y, truth = blobs(n=300, spread=0.5)
    np.save("X.npy", X)
    np.save("y.npy", y)
    return truth


def mapped(folder, *options):
    with rows_in_a_block(70):
        done(*FIT, "-o", folder, *options)
    return pq.read_table(f"{folder}/map.parquet")


@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "linear"])
def test_classes_lie_apart(truth, factor):
    table = mapped("out", "--factor", factor, "--clamp", "hard")
    assert table.column_names == COLUMNS
    assert table["id"].to_pylist() == table["row"].to_pylist() == list(range(300))
    np.testing.assert_array_equal(np.load("out/labels.npy"), table["label"].to_numpy())
    places = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    assert np.isfinite(places).all()
    centres = np.array([places[truth == code].mean(axis=0) for code in range(3)])
    nearest = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == truth).mean() > 0.95
    doubt, confidence = table["doubt"].to_numpy(), table["confidence"].to_numpy()
    assert ((doubt >= 0) & (doubt <= 1)).all()
    assert np.corrcoef(doubt, confidence)[0, 1] < 0
    y = np.load("y.npy")  # labels that are given are certain
    assert table["label"].to_numpy()[y >= 0].tolist() == y[y >= 0].tolist()
    assert (doubt[y >= 0] == 0).all()


def test_same_bits_on_every_engine(truth):
    assert mapped("threads", "--engine", "threads").equals(mapped("serial", "--engine", "serial"))


def test_an_interrupted_map_goes_on(tmp_path):
    rows = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    rows = np.column_stack([rows, np.arange(20.0).reshape(10, 2)])
    first, second = (MapSink(NpySink(tmp_path, 10, np.arange(3)), tmp_path) for _ in range(2))
    first.open()
    first.write(6, rows[6:])
    first.sync()
    assert second.resumable()
    second.open(resume=True)
    second.write(0, rows[:6])
    second.commit()
    table = pq.read_table(tmp_path / "map.parquet")
    np.testing.assert_allclose(table["x"].to_numpy(), rows[:, 3])


def test_rows_that_nothing_ties_together_have_one_place(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)
        model = LowRankLabelPropagation(factor="linear").fit(np.zeros((4, 1)), [1, 1, 1, 0])
        model.report_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 0
