"""Labels in files: of one a row, pairs, columns, IDs, exports of tools; and several of these."""

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


def shown(read):
    labels = read.labels
    return dict(zip(labels.rows.tolist(), labels.classes[labels.codes].tolist(), strict=True))


def save(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        getattr(frame, f"to_{path.suffix[1:]}")(path)
    return str(path)


def write(path, text):
    path.write_text(text)
    return str(path)


# Arrays, lines, columns, and pairs of row and label -----------------------------------------------

FRAME = pd.DataFrame({"x": np.arange(6.0), "t": TEXTS, "n": NUMBERS, "m": NUMBERS * 1.0})
FRAME.loc[FRAME.m < 0, "m"] = np.nan
ROW_PAIRS = pd.DataFrame({"row": [4, 1, 2, 5, 3], "label": [1, 0, 2, 0, -1]})
TEXT_PAIRS = pd.DataFrame({"row": [4, 1, 2, 5, 5], "label": ["a b", "cat", "dog", "cat", "cat"]})


@pytest.mark.parametrize(
    ("name", "given", "options", "expected"),
    [
        ("y.npy", np.array(["" if t is None else t for t in TEXTS]), {}, TEXTS),
        ("y.npy", np.where(NUMBERS < 0, np.nan, NUMBERS), {}, NUMBERS),
        ("y.npy", np.array([True, False]), {}, np.array([1, 0])),
        ("y.npy", np.tile(NUMBERS.astype(">i4"), 200_000), {}, np.tile(NUMBERS, 200_000)),
        ("y.txt", "-1\n0\n2\n\n1\n0\n", {}, NUMBERS),
        ("y.csv", "label\n-1\n0\n2\n\n1\n0\n", {}, NUMBERS),
        ("y.txt", '\ncat\ndog\n\n"a b"\ncat', {}, TEXTS),
        ("y.csv", 'label\n\ncat\ndog\n\n"a b"\ncat', {}, TEXTS),
        ("y.csv", "1,cat\n2,dog\n", {"n_rows": 3}, np.array([None, "cat", "dog"])),
        ("x.svm", "2 1:1\n-1 2:3\n0 1:1 # comment\n\n# nothing\n1\n", {}, np.array([2, -1, 0, 1])),
        ("x.svm", "+1 1:1\n-1 2:3\n0 1:1\n", {"unlabelled": 0}, np.array(["+1", "-1", None])),
        *[
            (f"y.{ending}", *more)
            for ending in ("csv", "parquet", "feather")
            for more in (
                (FRAME, {"column": "n"}, NUMBERS),
                (FRAME, {"column": "m", "n_rows": None}, NUMBERS),
                (FRAME, {"column": "t", "n_rows": None}, TEXTS),
                (ROW_PAIRS, {}, NUMBERS),
                (TEXT_PAIRS, {}, TEXTS),
            )
        ],
        # What are no labels.
        ("y.npy", np.array([0.5, 1.0]), {}, r"0\.5, a measurement and not a class"),
        ("y.npy", np.zeros((2, 2)), {}, "labels need one dimension"),
        ("y.npy", np.arange(200_001), {}, "more than 100,000 different labels .* measurements"),
        ("y.doc", "1\n2\n", {}, r"labels cannot be read from files ending in '\.doc'"),
        ("y.txt", "a\nb\n", {"n_rows": 9}, "has 2 labels, but there are 9 rows"),
        ("x.svm", "+1 1:1\n-1 2:3\n", {}, r"has the labels -1 and 1 only.*unlabelled=0"),
        ("y.csv", FRAME, {}, "has columns 'x', 't', 'n', 'm'; say which"),
        ("y.csv", "row,label\n1,0\n6,1\n", {}, "a label for row 6, but the rows are 0 to 5"),
        ("y.csv", "row,label\n1,0\n-2,1\n", {}, "a label for row -2"),
        ("y.csv", "row,label\n0.5,0\n1,1\n", {}, "row numbers must be whole numbers"),
        ("y.csv", "row,label\n0,0\n1,1\n", {"n_rows": None}, "the number of rows is needed"),
    ],
)
def test_labels_of_every_form(tmp_path, name, given, options, expected):
    path = tmp_path / name
    if isinstance(given, np.ndarray):
        np.save(path, given)
    else:
        save(given, path) if isinstance(given, pd.DataFrame) else write(path, given)
    refused = isinstance(expected, str)
    n_rows = len(given) if refused and name == "y.npy" else 6 if refused else len(expected)
    options = {"n_rows": n_rows} | options
    if refused:
        with pytest.raises(LabelError, match=expected):
            read_labels(path, **options)
        return
    labels = read_labels(path, **options)
    assert labels.dtype.kind == expected.dtype.kind
    assert labels.tolist() == expected.tolist()


# Labels from several places: later ones count more, votes become distributions, all is told ------


@pytest.fixture
def rows(tmp_path):
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
        f"{first}: 2 labelled rows, 1 of them labelled before and replaced, "
        "1 row (1) by another one.",
        f"{second}: 1 labelled rows, 1 of them labelled before and replaced, "
        "1 row (5) by another one.",
    ]
    assert shown(LabelInput(rows, (second, first), "kind").gather(10))[5] == "c"
    lines = "row,label\n3,a\n1,b\n3,b\n3,a\n2,a\n2,a\n"
    file = write(tmp_path / "labels.csv", lines)
    found = LabelInput(rows, (file,)).gather(10)
    np.testing.assert_allclose(found.labels.distribution, [[0, 1], [1, 0], [2 / 3, 1 / 3]])
    assert found.labels.weights is None
    told = f"{file}: 2 rows have several labels, which became label distributions where they "
    assert found.notes == [told + "differ: in 1 row (3)."]
    agreed = LabelInput(rows, (write(tmp_path / "same.csv", lines.replace("3,b", "3,a")),))
    assert agreed.gather(10).labels.distribution is None


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
    value = {"choices": list(labels)}
    return {"id": "x1", "from_name": name, "to_name": "text", "type": "choices", "value": value}


def annotation(*results, cancelled=False):
    return {"id": 7, "result": list(results), "was_cancelled": cancelled, "completed_by": 1}


def task(row, *annotations, **more):
    return {"id": row, "data": {"row": row, "t": "a"}, "annotations": [*annotations], **more}


def record(row, responses):
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
