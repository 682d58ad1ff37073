"""Labels in files: of one a row, pairs, columns, IDs, exports of tools; and several of these."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, LabelError, ParameterError
from biglp._labels import LabelInput
from biglp._rows import as_source
from cli_tools import done, failed
from helpers import blobs
from label_files import read_labels

NUMBERS = np.array([-1, 0, 2, -1, 1, 0])
TEXTS = np.array([None, "cat", "dog", None, "a b", "cat"], dtype=object)


def same(labels, expected):
    assert labels.dtype.kind == np.asarray(expected).dtype.kind
    assert labels.tolist() == expected.tolist()


def shown(read):
    """Classes by row."""
    labels = read.labels
    return dict(zip(labels.rows.tolist(), labels.classes[labels.codes].tolist(), strict=True))


def save(frame, path):
    """Write a table in the format of its ending."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        getattr(frame, f"to_{path.suffix[1:]}")(path)
    return str(path)


def write(path, text):
    path.write_text(text)
    return str(path)


# Arrays and lines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "f4", "f8", ">i4"])
def test_npy_of_numbers(tmp_path, dtype):
    for times in (1, 200_000):  # one piece of the file, and several
        np.save(tmp_path / "y.npy", np.tile(NUMBERS.astype(dtype), times))
        labels = LabelInput(None, (tmp_path / "y.npy",)).gather(6 * times).labels
        assert (labels.classes.tolist(), labels.classes.dtype) == ([0, 1, 2], np.int16)
        assert (np.tile(NUMBERS, times)[labels.rows] == labels.codes).all()
        assert len(labels.rows) == 4 * times


def test_npy_of_texts_nan_truth_and_large_numbers(tmp_path):
    path = tmp_path / "y.npy"
    np.save(path, np.array(["" if t is None else t for t in TEXTS]))
    same(read_labels(path, 6), TEXTS)
    np.save(path, np.where(NUMBERS < 0, np.nan, NUMBERS))
    same(read_labels(path, 6), NUMBERS)
    np.save(path, np.array([True, False]))
    same(read_labels(path, 2), np.array([1, 0]))
    for largest, dtype in ((32_767, "i2"), (32_768, "i4"), (2**31, "i8"), (-(2**63), "i8")):
        np.save(path, np.array([largest, 3, -1]))
        classes = LabelInput(None, (path,)).gather(3).labels.classes
        assert (sorted(classes), classes.dtype) == (sorted([largest, 3]), dtype)


def test_one_a_line(tmp_path):
    for path, header in ((tmp_path / "y.txt", ""), (tmp_path / "y.csv", "label\n")):
        path.write_text(header + "-1\n0\n2\n\n1\n0\n")
        same(read_labels(path, 6), NUMBERS)
        path.write_text(header + '\ncat\ndog\n\n"a b"\ncat')
        same(read_labels(path, 6), TEXTS)
    (tmp_path / "y.txt").write_text("a\nb\n")
    with pytest.raises(LabelError, match="has 2 labels, but there are 9 rows"):
        read_labels(tmp_path / "y.txt", 9)


def test_libsvm_and_simulated(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("2 1:1\n-1 2:3\n0 1:1 # comment\n\n# nothing\n1\n")
    same(read_labels(path, 4), np.array([2, -1, 0, 1]))
    path.write_text("+1 1:1\n-1 2:3\n0 1:1\n")
    same(read_labels(path, 3, unlabelled=0), np.array(["+1", "-1", None], dtype=object))
    path.write_text("+1 1:1\n-1 2:3\n")
    with pytest.raises(LabelError, match=r"has the labels -1 and 1 only.*unlabelled=0"):
        read_labels(path, 2)
    source = as_source("sim:5000x3,labels=7")
    np.testing.assert_array_equal(read_labels("sim:5000x3,labels=7", 5000), source.labels(0, 5000))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0.5, 1.0]), r"0\.5, a measurement and not a class"),
        (np.zeros((2, 2)), "labels need one dimension"),
        (np.arange(200_001), "more than 100,000 different labels .* measurements"),
        (None, r"labels cannot be read from files ending in '\.doc'"),
    ],
)
def test_what_are_no_labels(tmp_path, labels, message):
    path = tmp_path / ("y.doc" if labels is None else "y.npy")
    path.touch() if labels is None else np.save(path, labels)
    with pytest.raises(LabelError, match=message):
        read_labels(path, 2 if labels is None else len(labels))


# Columns, and pairs of row and label --------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_column_of_a_table(tmp_path, ending):
    frame = pd.DataFrame({"x": np.arange(6.0), "t": TEXTS, "n": NUMBERS, "m": NUMBERS * 1.0})
    frame.loc[frame.m < 0, "m"] = np.nan
    path = save(frame, tmp_path / f"x.{ending}")
    same(read_labels(path, 6, column="n"), NUMBERS)
    same(read_labels(path, column="m"), NUMBERS)
    same(read_labels(path, column="t"), TEXTS)
    with pytest.raises(ParameterError, match=r"has no column 'z'; it has 'x', 't'"):
        read_labels(path, 6, column="z")
    with pytest.raises(LabelError, match="has columns 'x', 't', 'n', 'm'; say which"):
        read_labels(path, 6)
    with pytest.raises(LabelError, match="has 6 labels, but there are 7 rows"):
        read_labels(path, 7, column="n")
    features = as_source(path, label_column="n", drop=["t", "m"])
    assert features.feature_names == ("x",)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_pairs(tmp_path, ending):
    path = tmp_path / f"y.{ending}"

    def pairs(rows, labels):
        return save(pd.DataFrame({"row": rows, "label": labels}), path)

    same(read_labels(pairs([4, 1, 2, 5, 3], [1, 0, 2, 0, -1]), 6), NUMBERS)
    rows, values = read_labels(path, 6, sparse=True)
    assert (rows.tolist(), values.tolist()) == ([1, 2, 4, 5], [0, 2, 1, 0])
    same(read_labels(pairs([4, 1, 2, 5, 5], ["a b", "cat", "dog", "cat", "cat"]), 6), TEXTS)
    with pytest.raises(LabelError, match="a label for row 6, but the rows are 0 to 5"):
        read_labels(pairs([1, 6], [0, 1]), 6)
    with pytest.raises(LabelError, match="a label for row -2"):
        read_labels(pairs([1, -2], [0, 1]), 6)
    with pytest.raises(LabelError, match="row numbers must be whole numbers"):
        read_labels(pairs([0.5, 1], [0, 1]), 6)
    with pytest.raises(LabelError, match="the number of rows is needed"):
        read_labels(pairs([0, 1], [0, 1]))
    no_header = write(tmp_path / "plain.csv", "1,cat\n2,dog\n")
    assert read_labels(no_header, 4).tolist() == [None, "cat", "dog", None]


# Labels from several places: later ones count more, votes become distributions, all is told ------


@pytest.fixture
def rows(tmp_path):
    """A table of ten rows with labels in a column."""
    frame = pd.DataFrame({"x": np.arange(10.0), "kind": [None, "a", "b"] + [None] * 7})
    return save(frame, tmp_path / "rows.parquet")


def test_later_labels_replace_earlier_ones_and_votes_become_distributions(rows, tmp_path):
    first = write(tmp_path / "first.csv", "row,label\n1,b\n5,c\n")
    # What suggest wrote, filled in but for one.
    second = write(tmp_path / "next.csv", "row,label,current_label,doubt\n5,a,b,0.4\n6,,b,0.5\n")
    found = LabelInput(rows, (first, second), "kind").gather(10)
    assert shown(found) == {1: "b", 2: "b", 5: "a"}
    assert found.notes == [
        "column 'kind': 2 labelled rows.",
        f"{first}: 2 labelled rows, 1 of them labelled before and replaced (1 differ).",
        f"{second}: 1 labelled rows, 1 of them labelled before and replaced (1 differ).",
    ]
    assert shown(LabelInput(rows, (second, first), "kind").gather(10))[5] == "c"
    lines = "row,label\n3,a\n1,b\n3,b\n3,a\n2,a\n2,a\n"
    file = write(tmp_path / "labels.csv", lines)
    found = LabelInput(rows, (file,)).gather(10)
    np.testing.assert_allclose(found.labels.distribution, [[0, 1], [1, 0], [2 / 3, 1 / 3]])
    assert found.labels.weights is None
    told = f"{file}: 2 rows have several labels; in 1 of them they differ (rows 3), and became "
    assert found.notes == [told + "label distributions."]
    agreed = LabelInput(rows, (write(tmp_path / "same.csv", lines.replace("3,b", "3,a")),))
    assert agreed.gather(10).labels.distribution is None


def test_a_column_that_the_rows_do_not_have_is_one_of_the_file(rows, tmp_path):
    file = write(tmp_path / "next.csv", "row,label\n5,c\n")
    assert as_source(rows, **LabelInput(rows, (file,), "kind").not_features).feature_names == ("x",)
    file = write(tmp_path / "other.csv", "row,mine,yours\n5,c,d\n6,d,c\n")
    named = LabelInput(rows, (file,), "mine")
    assert not named.not_features
    assert shown(named.gather(10)) == {5: "c", 6: "d"}
    with pytest.raises(ParameterError, match="no column 'hers'"):
        LabelInput(rows, (file,), "hers").gather(10)


def test_classes_of_one_type(tmp_path):
    for typed, answers, expected in (
        ([1, 2, None], "3,1\n4,7\n", {0: 1, 1: 2, 3: 1, 4: 7}),
        ([1, 2, None], "3,1\n4,x\n", {0: "1", 1: "2", 3: "1", 4: "x"}),
        (["01", "2", None], "3,01\n4,2\n", {0: "01", 1: "2", 3: "01", 4: "2"}),
    ):
        frame = pd.DataFrame({"x": np.arange(5.0), "y": [*typed, None, None]})
        rows = save(frame, tmp_path / "rows.parquet")
        file = write(tmp_path / "more.csv", "row,label\n" + answers)
        assert shown(LabelInput(rows, (file,), "y").gather(5)) == expected


def test_marks_of_no_label(tmp_path):
    lines = "label\ncat\nNA\n?\ndog\n-1\nNone\nnone\n"
    file = write(tmp_path / "y.csv", lines)
    found = LabelInput(None, (file,)).gather(7)
    assert shown(found) == {0: "cat", 3: "dog", 6: "none"}
    assert "taken for no label: 'NA' (1), '?' (1), '-1' (1), 'None' (1)" in found.notes[0]
    assert "the label 'none'" in str(found.suspicions()[0])
    found = LabelInput(None, (file,), unlabelled=("NA", "?", "none")).gather(7)
    assert shown(found) == {0: "cat", 3: "dog", 4: "-1", 5: "None"}
    assert not found.notes
    found = LabelInput(None, (file,), unlabelled=-1).gather(7)
    assert "none" in shown(found).values()
    (suspicion,) = found.suspicions(all_labelled=False)
    assert "differ in capital letters" in str(suspicion)
    table = pd.DataFrame({"x": range(7), "label": lines.split()[1:]})
    for name in ("rows.parquet", "rows.csv"):
        found = LabelInput(save(table, tmp_path / name), label_column="label").gather(7)
        assert shown(found) == {0: "cat", 3: "dog", 6: "none"}
        assert len(found.notes) == 1


# Labels joined by ID: of any type, in any order, whatever the cut into files and batches ----------


KEYS = {
    "text": [f"K-{number:03d}" for number in range(40)],
    "numbers": [1000 + 7 * number for number in range(40)],
    "zeros": [f"{number:05d}" for number in range(40)],
}


@pytest.mark.parametrize("keys", KEYS)
def test_ids_of_every_type_and_format(tmp_path, keys):
    frame = pd.DataFrame({"key": KEYS[keys], "x": np.arange(40.0) % 7})
    chosen = [31, 4, 25, 0]
    given = pd.DataFrame({"key": [KEYS[keys][row] for row in chosen], "label": list("abab")})
    for ending in ("csv", "parquet"):
        parts = (frame[:25], frame[25:])
        paths = [save(part, tmp_path / f"rows-{len(part)}.{ending}") for part in parts]
        for labels in ("csv", "parquet"):
            file = save(given, tmp_path / f"labels.{labels}")
            named = LabelInput(paths, (file,), id_column="key")
            found = named.gather(40)
            assert shown(found) == {0: "b", 4: "b", 25: "a", 31: "a"}
            assert not found.warnings
            assert as_source(paths, **named.not_features).feature_names == ("x",)


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


def test_rows_count_where_a_file_has_no_ids_and_floats_are_whole_numbers(tmp_path):
    rows = save(pd.DataFrame({"key": list("abcd"), "x": np.arange(4.0)}), tmp_path / "rows.csv")
    by_row = write(tmp_path / "1.csv", "row,label\n1,p\n2,q\n3,q\n")
    by_id = write(tmp_path / "2.csv", "key,row,label,doubt\nc,99,p,0.1\nd,98,,0.2\n")
    named = LabelInput(rows, (by_row, by_id), id_column="key")
    assert shown(named.gather(None)) == {1: "p", 2: "p", 3: "q"}
    frame = pd.DataFrame({"key": [5.0, 6.0, np.nan], "x": 1.0})
    rows, file = save(frame, tmp_path / "rows.parquet"), tmp_path / "labels.csv"
    file.write_text("ID,label\n6.0,a\n5,b\n")
    assert shown(LabelInput(rows, (file,), id_column="key").gather(3)) == {0: "b", 1: "a"}


def test_what_is_refused(tmp_path):
    rows = save(pd.DataFrame({"key": ["a", "b"], "x": [1.0, 2.0]}), tmp_path / "rows.parquet")
    file = tmp_path / "labels.csv"
    file.write_text("id,label\n17,1\n18,2\n")
    np.save(tmp_path / "rows.npy", np.eye(2))
    truth = pd.DataFrame({"label": [1, 2], "when": pd.to_datetime(["2020", "2021"]), "x": 1.0})
    more = save(truth, tmp_path / "more.parquet")
    for given, column, error, message in (
        (rows, "key", LabelError, r"none of the 2 IDs .*'17', '18'.*'a', 'b'"),
        (rows, "nix", ParameterError, r"id_column='nix'.* it has 'key', 'x'"),
        (rows, None, LabelError, r"joined by 'id' when .*--id-column"),
        (str(tmp_path / "rows.npy"), "key", ParameterError, "no table with named columns"),
        (more, "when", ParameterError, "IDs must be whole numbers or text"),
        (more, "label", ParameterError, "give the column another name"),
    ):
        with pytest.raises(error, match=message):
            LabelInput(given, (file,), id_column=column).gather(2)


def test_labels_and_ids_in_a_table_beside_the_rows(tmp_path):
    np.save(tmp_path / "rows.npy", np.eye(4))
    frame = pd.DataFrame({"key": list("abcd"), "kind": ["p", None, "q", None]})
    beside = [save(frame[:3], tmp_path / "1.parquet"), save(frame[3:], tmp_path / "2.parquet")]
    file = tmp_path / "labels.csv"
    file.write_text("key,label\nd,p\na,q\n")
    rows = str(tmp_path / "rows.npy")
    named = LabelInput(rows, (file,), "kind", id_column="key", metadata=beside)
    assert shown(named.gather(4)) == {0: "q", 2: "q", 3: "p"}
    assert not named.not_features
    assert named.ids.at(np.array([3, 0])) == ["d", "a"]


# A table beside shards: found, counted, and its columns used as labels ----------------------------


BOUNDS = (0, 90, 100, 400)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Shards of rows, and tables of metadata beside them."""
    monkeypatch.chdir(tmp_path)
    X, y, _ = blobs(n=400, features=4, dtype=np.float32)
    table = pa.table({"id": np.arange(400), "kind": [None if c < 0 else "abc"[c] for c in y]})
    for folder in ("emb", "meta", "csv"):
        Path(folder).mkdir()
    for number, start in zip((1, 2, 10), BOUNDS[:-1], strict=True):
        part = slice(start, BOUNDS[BOUNDS.index(start) + 1])
        np.save(f"emb/emb_{number}.npy", X[part])
        lines = table.slice(part.start, part.stop - part.start)
        pq.write_table(lines, f"meta/meta_{number}.parquet", row_group_size=37)
        pyarrow.csv.write_csv(lines, f"csv/meta_{number}.csv")
    pq.write_table(table, "all.parquet")
    return X, y


@cache
def expected_labels():
    X, y, _ = blobs(n=400, features=4, dtype=np.float32)
    names = np.array(["a", "b", "c", ""])
    model = LowRankLabelPropagation(random_state=0).fit(X, np.where(y < 0, None, names[y]))
    return model.transduction_


@pytest.mark.parametrize("metadata", ["meta/*.parquet", "meta", "csv/*.csv", "all.parquet"])
def test_labels_come_from_its_column(data, metadata):
    given = ("--metadata", metadata, "--label-column", "kind", "-o", "out")
    done("fit", "emb", *given, "-q")
    np.testing.assert_array_equal(np.load("out/labels.npy"), expected_labels())
    if metadata != "meta":
        return
    looked = json.loads(done("inspect", "emb/*.npy", *given[:-2], "--json").output)
    assert (looked["rows"], looked["features"], sum(looked["labels"].values())) == (400, 4, 24)
    # What belongs to the fit is found again from its folder.
    assert "400 rows" in done("fit", "emb", *given[:-1], "new", "--dry-run").output
    found = json.loads(done("suggest", "out", "-n", "3", "--json").output)
    assert found["labelled_rows"] == 24
    assert json.loads(done("check", "out", "--json").output)["labelled_rows"] == 24


@pytest.mark.parametrize("metadata", ["meta/*.parquet", "all.parquet"])
def test_labels_come_from_its_column_in_python(data, metadata):
    X, y = data
    for rows in ("emb", X):
        model = LowRankLabelPropagation(random_state=0, metadata=metadata, label_column="kind")
        np.testing.assert_array_equal(model.fit(rows).transduction_, expected_labels())
    assert model.n_features_in_ == 4
    # Labels by the IDs of its rows.
    Path("labels.csv").write_text("id,label\n3,p\n350,q\n")
    by_id = LowRankLabelPropagation(metadata=metadata, id_column="id").fit("emb", "labels.csv")
    assert (by_id.classes_.tolist(), by_id._problem.labels.rows.tolist()) == (["p", "q"], [3, 350])
    with pytest.raises(ValueError, match=r"399|400"):
        LowRankLabelPropagation(metadata=metadata, label_column="kind").fit(X[:-1])
    with pytest.raises(ParameterError, match="nothing says which of its columns"):
        LowRankLabelPropagation(metadata=metadata).fit(X, y)


def test_changes_and_wrong_numbers_of_rows_are_noticed(data):
    fit = ("fit", "emb", "--metadata", "meta", "-o", "out", "--label-column", "colour")
    assert "has no column 'colour'; it has 'id', 'kind'" in " ".join(failed(2, *fit).split())
    fit = ("fit", "emb", "--metadata", "meta", "--label-column", "kind", "-o", "out", "-q")
    done(*fit)
    done(*fit, "--resume")
    shard = np.load("emb/emb_2.npy")
    np.save("emb/emb_2.npy", shard + 1)
    assert "emb_2.npy" in failed(5, *fit, "--resume")
    np.save("emb/emb_2.npy", np.zeros((11, 4), np.float32))
    np.save("emb/emb_10.npy", np.zeros((299, 4), np.float32))  # 400 rows in all, as before
    for metadata in ("meta", "csv"):
        with pytest.raises(BadRowsError, match=r"2 of 3 shards .*emb_2.npy has 11 and .* 10;"):
            LabelInput("emb", metadata=metadata, label_column="kind").gather(400)
    assert LabelInput("emb", metadata="all.parquet", label_column="kind").gather(400).labels
    np.save("emb/emb_10.npy", np.zeros((300, 4), np.float32))
    fit = ("fit", "emb", "--metadata", "all.parquet", "--label-column", "kind", "-o", "new")
    message = " ".join(failed(3, *fit).split())
    assert "(all.parquet) has 400 rows, and emb/emb_1.npy and 2 more has 401" in message
    with pytest.raises(ParameterError, match=r"must be a table.*--labels"):
        LabelInput("emb", metadata="emb/emb_1.npy", label_column="kind").gather(400)


# Exports of labelling tools, in every form their documentation shows ------------------------------


def choice(*labels, name="label"):
    """A result of Label Studio."""
    value = {"choices": list(labels)}
    return {"id": "x1", "from_name": name, "to_name": "text", "type": "choices", "value": value}


def annotation(*results, cancelled=False):
    return {"id": 7, "result": list(results), "was_cancelled": cancelled, "completed_by": 1}


def task(row, *annotations, **more):
    return {"id": row, "data": {"row": row, "t": "a"}, "annotations": [*annotations], **more}


def record(row, responses):
    """A record of Argilla."""
    return {"id": f"r{row}", "fields": {"t": "a"}, "metadata": {"row": row}, "responses": responses}


def said(value, **more):
    return {"label": [{"value": value, "user_id": "u", **more}]}


def served(status, *values):
    return [{"status": status, "values": {"label": {"value": value}}} for value in values]


def flat(row, values, status):
    return {"id": "a", "row": row, "label.responses": values, "label.responses.status": status}


CAT, DOG, SUBMITTED = annotation(choice("cat")), choice("dog"), {"status": "submitted"}
BOTH = annotation(DOG, choice("clear", name="quality"))
GUESSED = [{"result": [DOG], "score": 0.4}]
EXPORTS = {
    "Label Studio": [
        task(3, CAT),
        task(4, CAT, BOTH, annotation(cancelled=True), predictions=GUESSED),
        task(5, annotation(DOG, cancelled=True)),
        task(6),
    ],
    "JSON-MIN": [
        {"id": 11, "row": 3, "label": "cat", "annotator": 1, "annotation_id": 7, "lead_time": 1.5},
        {"id": 12, "row": 4, "label": "cat", "annotator": 1, "annotation_id": 8},
        {"id": 12, "row": 4, "label": {"choices": ["dog"]}, "annotator": 2, "annotation_id": 9},
        *[{"id": 13, "row": row, "annotator": 2, "annotation_id": row} for row in (5, 6, 7)],
    ],
    "Argilla": [
        record(3, said("cat")),
        record(4, {"label": [{"value": value, **SUBMITTED} for value in ("cat", "dog")]}),
        record(5, said("dog", status="discarded")),
        record(6, said("dog", status="draft")),
        record(7, {}),
    ],
    "Argilla's server": [
        record(3, served("submitted", "cat")),
        record(4, served("submitted", "cat", "dog")),
        record(5, served("discarded", "dog")),
        record(6, served("draft", "dog")),
        record(7, []),
    ],
    "Argilla, flat": [
        flat(3, ["cat"], ["submitted"]),
        flat(4, ["cat", "dog", "dog"], ["submitted", "submitted", "draft"]),
        flat(5, ["cat"], ["discarded"]),
        flat(6, None, None),
    ],
}


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export(tmp_path, name):
    entries = EXPORTS[name]
    for ending, text in (
        ("jsonl", "\n".join(map(json.dumps, entries))),
        ("json", json.dumps(entries, indent=2)),
    ):
        path = write(tmp_path / f"export.{ending}", text)
        found = LabelInput(None, (path,)).gather(10)
        assert found.labels.rows.tolist() == [3, 4]
        assert found.labels.classes.tolist() == ["cat", "dog"]
        assert found.labels.distribution.tolist() == [[1, 0], [0.5, 0.5]]
        assert f"{path}: 3 entries without an answer were left out." in found.notes


def test_the_control_is_named_where_there_are_several(tmp_path):
    result = (choice("cat", name="animal"), choice("good", name="quality"))
    tasks = [task(1, annotation(*result)), task(2, annotation(choice("dog", name="animal")))]
    path = write(tmp_path / "export.json", json.dumps(tasks))
    with pytest.raises(LabelError, match=r"answers to 'animal', 'quality'; say which"):
        LabelInput(None, (path,)).gather(4)
    labels = LabelInput(None, (path,), label_column="animal").gather(4).labels
    assert labels.classes.tolist() == ["cat", "dog"]
    text = '{"row": 2, "label": 1}\n{"row": 0, "label": 0}\n\n{"row": 1, "label": null}\n'
    labels = LabelInput(None, (write(tmp_path / "labels.jsonl", text),)).gather(4).labels
    assert (labels.rows.tolist(), labels.classes.tolist()) == ([0, 2], [0, 1])


SEVERAL = "answers.json has an answer that names several classes: 'cat', 'dog'.*not supported yet"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("{not json", "cannot be read as JSON"),
        ([task(1)], r"holds no answer \(1 entries without one"),
        ([{"label": "cat"}, {"row": 3, "label": "dog"}], "1 of 2 answers do not say which row"),
        ([1, 2], "a list of objects"),
        ([task(3, annotation(choice("cat", "dog")))], SEVERAL),
        ([{"row": 3, "label": {"choices": ["cat", "dog"]}}], SEVERAL),
        ([{"row": 3, "label": ["cat", "dog"]}], SEVERAL),
        ([record(3, said(["cat", "dog"]))], SEVERAL),
    ],
)
def test_what_cannot_be_read(tmp_path, entries, message):
    text = entries if isinstance(entries, str) else json.dumps(entries)
    answers = write(tmp_path / "answers.json", text)
    with pytest.raises(LabelError, match=message):
        LabelInput(None, (answers,)).gather(4)
