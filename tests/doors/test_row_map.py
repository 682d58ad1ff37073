"""A map of the rows: near rows near each other, the same on every engine and cut."""

import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import BigLPWarning, MemoryBudgetError
from biglp._core.settings import Settings
from biglp._engines import make_engine
from biglp._fit.pipeline import Pipeline
from biglp._fit.sample import map_bytes
from biglp._labels import encode_labels
from biglp._output import NpySink
from biglp._output.table import MapSink
from biglp._rows import as_source
from helpers import blobs, rows_in_a_block

COLUMNS = ["row", "id", "x", "y", "label", "confidence", "doubt"]


def mapped(folder, X, y, engine="serial", **parameters):
    """The map of a fit."""
    parameters = {"n_landmarks": 40, "memory": "1GB", **parameters}
    labels = encode_labels(y, len(X))
    sink = MapSink(NpySink(folder, len(X), labels.classes), folder)
    with make_engine(engine) as made, rows_in_a_block(70), sink:
        Pipeline(made, Settings.of(parameters)).fit(as_source(X), labels, sink)
    assert sink.names == ["labels.npy", "map.parquet"]
    assert {path.name for path in folder.iterdir()} == {"labels.npy", "map.parquet"}
    return pq.read_table(folder / "map.parquet")


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "linear"])
def test_classes_lie_apart(tmp_path, factor):
    X, y, truth = blobs(n=300, spread=0.5)
    table = mapped(tmp_path, X, y, factor=factor)
    assert table.column_names == COLUMNS
    assert table["id"].to_pylist() == table["row"].to_pylist() == list(range(300))
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), table["label"].to_numpy())
    places = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    assert np.isfinite(places).all()
    centres = np.array([places[truth == code].mean(axis=0) for code in range(3)])
    nearest = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == truth).mean() > 0.95
    doubt, confidence = table["doubt"].to_numpy(), table["confidence"].to_numpy()
    assert ((doubt >= 0) & (doubt <= 1)).all()
    assert np.corrcoef(doubt, confidence)[0, 1] < 0


def test_same_bits_on_every_engine(tmp_path):
    X, y, _ = blobs(n=300)
    found = []
    for engine in ("serial", "threads"):
        (tmp_path / engine).mkdir()
        found.append(mapped(tmp_path / engine, X, y, engine))
    assert found[0].equals(found[1])


def test_labelled_rows_keep_their_labels(tmp_path):
    X, y, _ = blobs(n=300)
    table = mapped(tmp_path, X, y, factor="anchors", clamp="hard")
    known = np.flatnonzero(y >= 0)
    assert table["label"].to_numpy()[known].tolist() == y[known].tolist()
    assert (table["doubt"].to_numpy()[known] == 0).all()


def test_an_interrupted_map_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    answers = rng.dirichlet(np.ones(3), 10)
    rows = np.column_stack([answers, rng.normal(size=(10, 2))])

    def sink():
        return MapSink(NpySink(tmp_path, 10, np.arange(3)), tmp_path)

    first = sink()
    first.open()
    first.write(6, rows[6:])
    first.sync()
    second = sink()
    assert second.resumable()
    second.open(resume=True)
    second.write(0, rows[:6])
    second.commit()
    table = pq.read_table(tmp_path / "map.parquet")
    np.testing.assert_allclose(table["x"].to_numpy(), rows[:, 3], rtol=1e-6)
    ordered = np.sort(answers, axis=1)
    np.testing.assert_allclose(table["doubt"].to_numpy(), 1 - ordered[:, 2] + ordered[:, 1], 1e-5)


def test_the_memory_plan_counts_the_map():
    """A map needs a larger budget, and the plan says so before the first sweep."""
    X, y, _ = blobs(n=300, spread=0.5)
    labels, source = encode_labels(y, len(X)), as_source(X)
    with make_engine("serial") as engine:
        pipeline = Pipeline(engine, Settings.of({"n_landmarks": 40, "memory": "1GB"}))
        plain = pipeline.prepare(source, labels).plan
        mapped = pipeline.prepare(source, labels, places=True).plan
        assert mapped.expected - plain.expected == map_bytes(40, 1) > 1 << 23
        little = Settings.of({"n_landmarks": 40, "memory": plain.expected + (1 << 20)})
        assert Pipeline(engine, little).prepare(source, labels).plan.rows_each > 0
        with pytest.raises(MemoryBudgetError, match="is too little"):
            Pipeline(engine, little).prepare(source, labels, places=True)


def test_rows_that_nothing_ties_together_have_one_place(tmp_path):
    X, y = np.zeros((4, 1)), [1, 1, 1, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)
        model = LowRankLabelPropagation(factor="linear").fit(X, y)
        model.report_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 0
