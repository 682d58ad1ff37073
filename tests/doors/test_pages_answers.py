"""Answers on disk: nothing confirmed is lost, nothing counts twice, at whatever moment it ends."""

import json
import os

import numpy as np
import pytest

from biglp._core import LabelError, OutputError, ParameterError
from biglp._labelling import Answers, History, Known, LabelsFile
from biglp._labels import LabelInput
from windows_rules import keep_windows_rules

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    'a "quoted, label"',
    "semi;colon",
    "tab-less | pipe",
    "'; DROP TABLE labels; --",
    "=cmd()",
    "grün ∞ 漢字 🙂",
    "../../etc/passwd",
    "row",
    "007",
]
OPEN = []


@pytest.fixture(autouse=True)
def synced(monkeypatch):
    found = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: found.append(os.readlink(f"/proc/self/fd/{handle}"))
    )
    yield found
    while OPEN:
        OPEN.pop().close()


def start(path, known=(), classes=()):
    journal = History(path)
    OPEN.append(journal)
    file = LabelsFile(path, "row", lambda rows: [str(row) for row in rows])
    lines = file.read(torn=journal.pending is not None)
    own = {int(key): label for key, label in lines}
    there = Known(list(dict(known)), list(dict(known).values()))
    OPEN.append(Answers(file, own, journal, known=there, pool=np.arange(50), classes=classes))
    return OPEN[-1]


def on_disk(path):
    lines = LabelsFile(path, "row", lambda rows: []).read()
    return [(int(key), label) for key, label in lines]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.csv"


def test_an_answer_is_a_line_that_is_forced_to_disk_journal_first(path, synced):
    answers = start(path)
    synced.clear()
    answers.label([7], "cat", "a")
    assert synced == [f"{path}.journal", str(path)]
    answers.label([3, 5], "dog", "b")
    assert path.read_text() == "row,label\n7,cat\n3,dog\n5,dog\n"
    synced.clear()
    answers.label([7], "dog", "c")  # the file is written anew
    assert synced[0] == f"{path}.journal"
    assert synced[-1] == str(path.parent)
    assert on_disk(path) == [(7, "dog"), (3, "dog"), (5, "dog")]
    assert answers.undo("d") == {"rows": [7], "label": "dog"}
    assert on_disk(path) == [(7, "cat"), (3, "dog"), (5, "dog")]


def test_the_same_answer_twice_counts_once(path):
    answers = start(path)
    answers.label([7], "cat", "a")
    answers.label([8], "dog", "a")
    answers.skip(9, "a")
    assert answers.undo("a") is None
    answers.close()
    again = start(path)
    again.label([8], "dog", "a")
    assert on_disk(path) == [(7, "cat")]
    assert not again.skipped


def test_undo_goes_back_through_labels_and_skips_also_after_a_restart(path):
    answers = start(path)
    answers.label([1, 2], "cat", "a")
    answers.skip(3, "b")
    answers.label([4], "dog", "c")
    answers.close()
    answers = start(path)
    assert list(answers.skipped) == [3]
    assert answers.undo("d") == {"rows": [4], "label": "dog"}
    assert answers.undo("e") == {"rows": [3], "label": None}
    assert not answers.skipped
    assert answers.undo("f") == {"rows": [1, 2], "label": "cat"}
    assert on_disk(path) == []
    assert not answers.can_undo
    assert answers.undo("g") is None


def test_renaming_changes_lines_and_what_undo_restores(path):
    answers = start(path)
    answers.label([1], "cat", "a")
    answers.label([1], "dog", "b")
    answers.skip(2, "c")
    answers.rename("cat", "Katze")
    answers.rename("dog", "Hund")
    assert on_disk(path) == [(1, "Hund")]
    assert answers.classes == ["Katze", "Hund"]
    answers.undo("d")
    answers.undo("e")
    assert on_disk(path) == [(1, "Katze")]
    with pytest.raises(LabelError, match="already"):
        answers.rename("Hund", "Katze")
    with pytest.raises(LabelError, match="no class 'cat'"):
        answers.rename("cat", "x")


def test_labels_from_elsewhere_are_overruled_and_come_back(path):
    """Those of rows outside the pool count, but are not learnt from."""
    answers = start(path, known={1: "cat", 2: "dog", 70: "dog", 80: "dog"})
    answers.label([1], "dog", "a")
    assert answers.labelled() == {1: "dog", 2: "dog"}
    assert on_disk(path) == [(1, "dog")]
    answers.undo("b")
    assert answers.labelled() == {1: "cat", 2: "dog"}
    assert answers.counts() == {"cat": 1, "dog": 3}
    assert answers.label_of(70) == "dog"
    answers.label([70], "cat", "c")
    assert answers.labelled() == {1: "cat", 2: "dog", 70: "cat"}
    answers.rename("dog", "wolf")
    assert answers.counts() == {"cat": 2, "wolf": 2}
    assert dict(answers.all_labels()) == {1: "cat", 2: "wolf", 70: "cat", 80: "wolf"}
    assert dict(on_disk(path)) == {70: "cat", 2: "wolf", 80: "wolf"}


@pytest.mark.parametrize(
    "name", ["", "  ", "-1", "-1.0", "NA", "null", "?", "a\nb", "x" * 300, 3, "\ud800"]
)
def test_names_that_a_file_of_labels_cannot_hold(path, name):
    answers = start(path)
    with pytest.raises(LabelError):
        answers.label([1], name, "a")
    assert on_disk(path) == []


def test_fit_reads_what_was_answered(tmp_path):
    for number, name in enumerate([*HOSTILE, None]):  # all together, and each beside a plain one
        path = tmp_path / f"{number}.csv"
        names = HOSTILE if name is None else [name, "plain"]
        answers = start(path)
        for row, label in enumerate(names):
            answers.label([row], label, f"a{row}")
        labels = LabelInput(None, labels=(str(path),)).gather(len(names)).labels
        assert labels.rows.tolist() == list(range(len(names)))
        assert labels.classes[labels.codes].tolist() == names


def test_it_works_by_the_rules_of_windows_and_for_one_server_at_a_time(path, monkeypatch):
    keep_windows_rules(monkeypatch)
    answers = start(path)
    for row, label in ((3, "cat"), (5, "dog"), (3, "dog")):
        answers.label([row], label, f"{row}{label}")
    answers.rename("dog", "wolf")
    with pytest.raises(ParameterError, match="in use"):
        History(path)
    answers.close()
    again = start(path)
    assert again.own == {5: "wolf", 3: "wolf"}
    again.close()
    fresh = History(path.with_name("other.csv"))
    fresh.give_up()
    assert not fresh.path.exists()


def test_files_of_another_form_are_left_alone(path):
    path.write_text("a,b,c\n1,2,3\n")
    with pytest.raises(ParameterError, match="begins with 'a,b,c'"):
        start(path)
    assert path.read_text() == "a,b,c\n1,2,3\n"
    path.write_text("row,label\n1,cat")  # an editor left the last line without an end
    OPEN.pop().close()
    start(path).label([2], "dog", "a")
    assert on_disk(path) == [(1, "cat"), (2, "dog")]


class Killed(BaseException):
    """The process ends here."""


def steps(answers):
    answers.label([1], "cat", "a")
    yield [(1, "cat")]
    answers.label([2, 3], "dog", "b")
    yield [(1, "cat"), (2, "dog"), (3, "dog")]
    answers.skip(4, "c")
    yield [(1, "cat"), (2, "dog"), (3, "dog")]
    answers.label([1], "dog", "d")
    yield [(1, "dog"), (2, "dog"), (3, "dog")]
    answers.undo("e")
    yield [(1, "cat"), (2, "dog"), (3, "dog")]
    if "wolf" not in answers.classes:
        answers.rename("dog", "wolf")
    yield [(1, "cat"), (2, "wolf"), (3, "wolf")]


def killed_at(moment, path, monkeypatch):
    passed, confirmed = 0, -1

    def pass_moment(function):
        def wrapped(*args, **more):
            nonlocal passed
            passed += 1
            if passed == moment:
                raise Killed
            found = function(*args, **more)
            passed += 1
            if passed == moment:
                raise Killed
            return found

        return wrapped

    answers = start(path)
    with monkeypatch.context() as patched:
        for kind, names in ((History, ("begin", "done")), (LabelsFile, ("append", "rewrite"))):
            for name in names:
                patched.setattr(kind, name, pass_moment(getattr(kind, name)))
        try:
            for _ in steps(answers):
                confirmed += 1
        except Killed:
            pass
    answers.close()
    return confirmed


def test_killed_between_any_two_writes(tmp_path, monkeypatch):
    moment = 0
    while True:
        moment += 1
        path = tmp_path / f"{moment}.csv"
        confirmed = killed_at(moment, path, monkeypatch)
        expected = list(steps(start(tmp_path / f"{moment}-whole.csv")))
        answers = start(path)
        before, after = [[], *expected][confirmed + 1 : confirmed + 3] + [None] * (confirmed == 5)
        assert on_disk(path) in ([before] if after is None else [before, after])
        # The page sends what was not confirmed again, and it counts once.
        for _ in steps(answers):
            pass
        assert on_disk(path) == expected[-1]
        if confirmed == 5:
            break
    assert moment > 20


LINE = b'12,"dog, hot"\n'
ENTRY = {"do": "label", "answer": "b", "rows": [12], "label": "dog, hot", "was": [None]}


@pytest.mark.parametrize("of_labels", [True, False])
def test_killed_in_the_middle_of_a_line(tmp_path, of_labels):
    """Of the journal: it was not confirmed. Of labels: the journal has all of it."""
    entry = json.dumps(ENTRY).encode()
    for kept in range(len(LINE) + 1) if of_labels else range(0, 60, 7):
        path = tmp_path / f"{kept}.csv"
        answers = start(path)
        answers.label([1], "cat", "a")
        answers.close()
        with open(path.with_name(f"{kept}.csv.journal"), "ab") as file:
            file.write(entry + b"\n" if of_labels else entry[:kept])
        if of_labels:
            path.write_bytes(path.read_bytes() + LINE[:kept])
        answers = start(path)
        assert on_disk(path) == [(1, "cat"), *([(12, "dog, hot")] if of_labels else [])]
        answers.label([12], "dog, hot", "b")
        answers.close()
        assert start(path).labelled() == {1: "cat", 12: "dog, hot"}


def test_a_full_disk_is_told_and_made_good_for(path, monkeypatch):
    answers = start(path)
    answers.label([1], "cat", "a")

    def full(file, rows, label):
        raise OutputError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(LabelsFile, "append", full)
        with pytest.raises(OutputError):
            answers.label([2], "dog", "b")
    assert on_disk(path) == [(1, "cat")]
    answers.label([2], "dog", "b")  # the page tries again
    assert on_disk(path) == [(1, "cat"), (2, "dog")]


def test_a_journal_that_is_none(path):
    path.with_name("answers.csv.journal").write_text("what is this\n")
    with pytest.raises(ParameterError, match="Remove it"):
        start(path)
