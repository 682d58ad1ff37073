"""Labels joined by ID: of any type, in any order, whatever the cut into files and batches."""

import numpy as np
import pandas as pd
import pytest

from biglp._core.errors import LabelError, ParameterError
from biglp._labels import join_ids as joined
from biglp._labels.reading import LabelInput
from biglp._rows import as_source

KEYS = {
    "text": [f"K-{number:03d}" for number in range(40)],
    "numbers": [1000 + 7 * number for number in range(40)],
    "zeros": [f"{number:05d}" for number in range(40)],
}


def save(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return str(path)


def shown(labels):
    return dict(zip(labels.rows.tolist(), labels.classes[labels.codes].tolist(), strict=True))


@pytest.fixture(params=[3, 1 << 27])
def _looked_up(request, monkeypatch):
    monkeypatch.setattr("biglp._labels.join_ids.LOOKED_UP_BYTES", request.param)


@pytest.mark.usefixtures("_looked_up")
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("labels", ["csv", "parquet"])
def test_every_type_and_format(tmp_path, keys, ending, labels):
    frame = pd.DataFrame({"key": KEYS[keys], "x": np.arange(40.0) % 7})
    paths = [
        save(frame[:25], tmp_path / f"rows-1.{ending}"),
        save(frame[25:], tmp_path / f"rows-2.{ending}"),
    ]
    chosen = [31, 4, 25, 0]
    given = pd.DataFrame({"key": [KEYS[keys][row] for row in chosen], "label": list("abab")})
    file = save(given, tmp_path / f"labels.{labels}")
    named = LabelInput(paths, (file,), id_column="key")
    found = named.gather(40)
    assert shown(found.labels) == {0: "b", 4: "b", 25: "a", 31: "a"}
    assert not found.warnings
    assert as_source(paths, **named.not_features).feature_names == ("x",)


def test_floats_and_text_of_whole_numbers_are_these_numbers(tmp_path):
    rows = save(pd.DataFrame({"key": [5.0, 6.0, np.nan], "x": 1.0}), tmp_path / "rows.parquet")
    file = tmp_path / "labels.csv"
    file.write_text("ID,label\n6.0,a\n5,b\n")
    assert shown(LabelInput(rows, (file,), id_column="key").read(3)) == {0: "b", 1: "a"}


def test_unknown_and_repeated_ids_are_told(tmp_path):
    frame = pd.DataFrame({"key": ["a", "b", "a", "c", None], "x": np.arange(5.0)})
    rows, file = save(frame, tmp_path / "rows.parquet"), tmp_path / "labels.csv"
    file.write_text("key,label,weight\na,1,2\nz,1,1\nb,2,1\ny,2,1\nb,1,3\n")
    found = LabelInput(rows, (file,), id_column="key").gather(5)
    assert found.labels.rows.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.labels.distribution, [[1, 0], [0.75, 0.25], [1, 0]])
    np.testing.assert_allclose(found.labels.weights, [2, 4, 2])
    unknown, repeated = map(str, found.warnings)
    assert "2 IDs are those of no row" in unknown
    assert "'z', 'y'" in unknown
    assert "1 IDs are those of several rows" in repeated
    assert "'a'" in repeated


def test_rows_count_where_a_file_has_no_ids(tmp_path):
    frame = pd.DataFrame({"key": list("abcd"), "x": np.arange(4.0)})
    rows = save(frame, tmp_path / "rows.csv")
    by_row, by_id = tmp_path / "1.csv", tmp_path / "2.csv"
    by_row.write_text("row,label\n1,p\n2,q\n3,q\n")
    by_id.write_text("key,row,label,doubt\nc,99,p,0.1\nd,98,,0.2\n")
    named = LabelInput(rows, (by_row, by_id), id_column="key")
    assert shown(named.read(None)) == {1: "p", 2: "p", 3: "q"}


def test_what_is_refused(tmp_path):
    rows = save(pd.DataFrame({"key": ["a", "b"], "x": [1.0, 2.0]}), tmp_path / "rows.parquet")
    file = tmp_path / "labels.csv"
    file.write_text("id,label\n17,1\n18,2\n")
    with pytest.raises(LabelError, match=r"none of the 2 IDs .*'17', '18'.*'a', 'b'"):
        LabelInput(rows, (file,), id_column="key").gather(2)
    with pytest.raises(ParameterError, match=r"id_column='nix'.* it has 'key', 'x'"):
        LabelInput(rows, (file,), id_column="nix").gather(2)
    np.save(tmp_path / "rows.npy", np.eye(2))
    with pytest.raises(ParameterError, match="no table with named columns"):
        LabelInput(str(tmp_path / "rows.npy"), (file,), id_column="key").gather(2)
    truth = pd.DataFrame({"label": [1, 2], "when": pd.to_datetime(["2020", "2021"]), "x": 1.0})
    rows = save(truth, tmp_path / "more.parquet")
    with pytest.raises(ParameterError, match="IDs must be whole numbers or text"):
        LabelInput(rows, (file,), id_column="when").gather(2)
    with pytest.raises(ParameterError, match="give the column another name"):
        LabelInput(rows, (file,), id_column="label").gather(2)


def test_labels_and_ids_in_a_table_beside_the_rows(tmp_path):
    np.save(tmp_path / "rows.npy", np.eye(4))
    frame = pd.DataFrame({"key": list("abcd"), "kind": ["p", None, "q", None]})
    beside = [save(frame[:3], tmp_path / "1.parquet"), save(frame[3:], tmp_path / "2.parquet")]
    file = tmp_path / "labels.csv"
    file.write_text("key,label\nd,p\na,q\n")
    rows = str(tmp_path / "rows.npy")
    named = LabelInput(rows, (file,), "kind", id_column="key", metadata=beside)
    assert shown(named.read(4)) == {0: "q", 2: "q", 3: "p"}
    assert not named.not_features
    assert named.ids.at(np.array([3, 0])) == ["d", "a"]


def test_a_small_budget_looks_up_fewer_ids_at_once(tmp_path, monkeypatch):
    """The labels are the same, whatever the memory."""
    frame = pd.DataFrame({"key": [f"K-{number}" for number in range(20_000)], "x": 1.0})
    frame["x"] = np.arange(len(frame)) % 7
    path = save(frame, tmp_path / "rows.parquet")
    given = pd.DataFrame({"key": ["K-17", "K-19999"], "label": ["a", "b"]})
    file = save(given, tmp_path / "labels.csv")
    monkeypatch.setattr(joined, "LEAST_LOOKED_UP", 1 << 10)
    looked_up = []
    index_in = joined.pc.index_in
    monkeypatch.setattr(
        joined.pc,
        "index_in",
        lambda ids, **more: looked_up.append(ids.nbytes) or index_in(ids, **more),
    )
    found = []
    for memory in (None, 1 << 20):
        looked_up.clear()
        labels = LabelInput(path, (file,), id_column="key", memory=memory).read(len(frame))
        found.append((shown(labels), len(looked_up)))
    assert found[0] == ({17: "a", 19_999: "b"}, 1)
    assert found[1][0] == found[0][0]
    assert found[1][1] > 1
    assert [joined.looked_up_bytes(n) for n in (1 << 40, 1 << 30)] == [128 << 20, 64 << 20]
