"""The answers of people: what each row was called, kept so that nothing is lost or counted twice.

Every change goes to disk before it is confirmed: first the journal, then the file of labels, then
the reply. A change says which rows get which labels, so that doing it twice is doing it once.
"""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from biglp._core.errors import LabelError, ParameterError
from biglp._files.local import atomic_write, explained_writing, let_go, lock_file, sync_folder
from biglp._labels.reading import whole_number
from biglp._rows.written_numbers import MISSING_TEXTS

# --------------------------------------------------------------------------------------------------
# What was done, in order, one line of JSON each: what the file of labels itself does not say.
#
# A line is on disk before what it says is done to the file of labels, and a second line says that
# it was. After an end at any moment the last line is therefore whole and done, whole and not done
# (it is done again, which changes nothing where it had been done), or cut off: then nobody was told
# that it was saved, and it is forgotten.


ENDING = ".journal"


class History:
    """What was done before, in ``past``, beside a file of labels; one process at a time holds it.

    ``pending`` is the last of it, where it may not have reached the file of labels.
    """

    def __init__(self, labels: Path) -> None:
        self.path = labels.with_name(labels.name + ENDING)
        with explained_writing(self.path):
            file = lock_file(self.path)
        if file is None:
            raise ParameterError(
                f"{labels} is in use: another biglp label writes its answers there. Use the page "
                "of that one, end it first (Ctrl-C), or give another file (--labels)."
            )
        self._file = file
        self.past: list[dict[str, Any]] = []
        self.pending: dict[str, Any] | None = None
        try:
            text = self.path.read_bytes()
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                file.truncate(whole)  # cut off while it was written: it was never answered
            for number, line in enumerate(text[:whole].splitlines(), 1):
                try:
                    entry = json.loads(line)
                except ValueError as error:
                    raise ParameterError(
                        f"{self.path} cannot be read (line {number:,} is no JSON); it holds what "
                        "undo needs. Remove it to go on without, the labels have a file of their "
                        "own."
                    ) from error
                if entry.get("do") == "done":
                    self.pending = None
                else:
                    self.pending = entry
                    self.past.append(entry)
            sync_folder(self.path.parent)
        except BaseException:
            file.close()
            raise

    def begin(self, entry: dict[str, Any]) -> None:
        """Write what is about to be done; it is on disk when this returns."""
        self._append(entry)
        os.fsync(self._file.fileno())

    def done(self) -> None:
        """Write that it was done. This line may be lost: then it is done again."""
        self._append({"do": "done"})

    def _append(self, entry: dict[str, Any]) -> None:
        size = os.fstat(self._file.fileno()).st_size
        try:
            with explained_writing(self.path):
                # Without a buffer: what could not be written must not be written later.
                line = memoryview(json.dumps(entry).encode() + b"\n")
                while line:  # a disk that is nearly full takes a part of it, and then refuses
                    line = line[os.write(self._file.fileno(), line) :]
        except BaseException:
            self._file.truncate(size)
            raise

    def close(self) -> None:
        """Let another process have it."""
        self._file.close()

    def give_up(self) -> None:
        """Close it, and leave nothing behind where nothing was ever written."""
        if not self.path.stat().st_size:
            let_go(self.path, self._file)
        self.close()


# --------------------------------------------------------------------------------------------------
# The file of labels: a line an answer, ``row,label`` or ``id,label``, for ``biglp fit``.


LABEL = "label"


class LabelsFile:
    """Labels on disk, in the order in which rows got them.

    The first column is called ``key``, "row" or the column of IDs, and holds the ``keys_of`` rows.
    """

    def __init__(self, path: Path, key: str, keys_of: Callable[[Sequence[int]], list[str]]) -> None:
        self.path, self.key, self.keys_of = path, key, keys_of

    def read(self, *, torn: bool = False) -> list[tuple[str, str]]:
        """Keys and labels; ``torn`` forgets a last line without an end."""
        if not self.path.exists():
            return []
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise self._other_form("is no text in UTF-8") from error
        if torn:
            text = text[: text.rfind("\n") + 1]
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
        if not lines:
            return []
        if lines[0] != [self.key, LABEL]:
            raise self._other_form(f"begins with {','.join(lines[0])[:60]!r}")
        bad = next((number for number, line in enumerate(lines, 1) if len(line) != 2), None)
        if bad is not None:
            raise LabelError(
                f"{self.path} has {len(lines[bad - 1])} values in entry {bad:,}, where "
                f"{self.key} and label are expected; correct it, or give another file (--labels)."
            )
        return [(key, label) for key, label in lines[1:]]

    def _other_form(self, form: str) -> ParameterError:
        return ParameterError(
            f"{self.path} {form}, but answers are written to a CSV file that begins with "
            f"'{self.key},{LABEL}'. Give such a file, or one that does not exist yet, as the last "
            "--labels; labels in another form may be named before it."
        )

    def open(self) -> None:
        """Make the file where there is none, and be ready to append."""
        empty = not self.path.exists() or not self.path.stat().st_size
        if empty:
            self.rewrite({})
        with explained_writing(self.path):
            self._file = open(self.path, "a+b")  # noqa: SIM115  open as long as the server runs
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":  # an editor may have left the last line without an end
                self._file.write(b"\n")

    def append(self, rows: Sequence[int], label: str) -> None:
        """Add labels of rows that have none; they are on disk when this returns."""
        with explained_writing(self.path):
            self._file.write(_csv(zip(self.keys_of(rows), [label] * len(rows), strict=True)))
            self._file.flush()
            os.fsync(self._file.fileno())

    def rewrite(self, labels: dict[int, str]) -> None:
        """Put other labels in place of all, whole or not at all."""
        keys = self.keys_of(list(labels))
        lines = dict(zip(keys, labels.values(), strict=True))  # rows may share an ID
        with atomic_write(self.path) as file:
            file.write(_csv([(self.key, LABEL), *lines.items()]))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _csv(lines: Iterable[tuple[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


# --------------------------------------------------------------------------------------------------
# Labels from elsewhere: those of a column or of other files, which may be as many as rows.


class Known:
    """Labels by row, a few bytes each; of a row that occurs several times the last counts."""

    def __init__(self, rows: ArrayLike = (), values: ArrayLike = ()) -> None:
        """Take row numbers, (l,), increasing, and their labels, (l,)."""
        rows, values = np.asarray(rows, dtype=np.int64), np.asarray(values)
        last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
        self.rows = rows[last]
        distinct, self._codes = np.unique(values[last].astype(str), return_inverse=True)
        self._names = [str(name) for name in distinct]

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, row: int) -> str | None:
        """The label of a row."""
        index = int(np.searchsorted(self.rows, row))
        if index == len(self.rows) or self.rows[index] != row:
            return None
        return self._names[self._codes[index]]

    def counts(self) -> Counter[str]:
        """Rows of each class."""
        counts = np.bincount(self._codes, minlength=len(self._names)).tolist()
        return Counter(dict(zip(self._names, counts, strict=True)))

    def rows_called(self, name: str) -> list[int]:
        """Rows of one class."""
        if name not in self._names:
            return []
        rows: list[int] = self.rows[self._codes == self._names.index(name)].tolist()
        return rows

    def among(self, rows: np.ndarray) -> dict[int, str]:
        """Labels of those of some rows, increasing, that have one."""
        indices = np.flatnonzero(np.isin(self.rows, rows, assume_unique=True))
        names = [self._names[code] for code in self._codes[indices]]
        return dict(zip(self.rows[indices].tolist(), names, strict=True))


# --------------------------------------------------------------------------------------------------
# Answers: labels, the classes in the order of their keys, and steps back.


MOST_LETTERS = 200
DIGITS = "123456789"
"""Keys of classes; letters are names that are typed."""
REMEMBERED = 10_000
"""Steps that can be undone."""


def class_name(name: Any) -> str:
    """Check the name of a class, which must come back from a file of labels as it is."""
    if not isinstance(name, str):
        raise LabelError("the name of a class must be text.")
    name = name.strip()
    if not name or name in MISSING_TEXTS or whole_number(name) == -1:
        raise LabelError(
            f"a class cannot be called {name!r}: in files that means a row without a label. "
            "Give it another name."
        )
    if len(name) > MOST_LETTERS or not name.isprintable():
        raise LabelError(
            f"the name of a class is one line of at most {MOST_LETTERS} letters; "
            f"this one has {len(name)}, or characters that cannot be seen."
        )
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise LabelError("the name of a class must be text in Unicode.") from error
    return name


class Answers:
    """Labels given on the page, in ``own``, over those that were ``known`` from elsewhere.

    ``keys`` are the classes in order, each with its key, which stays the same when a class is
    renamed; ``version`` grows with every change of a label. Of the known labels those of rows in
    ``pool``, increasing, are learnt.
    """

    def __init__(
        self,
        file: LabelsFile,
        own: Mapping[int, str],
        journal: History,
        *,
        known: Known,
        pool: np.ndarray,
        classes: Sequence[str] = (),
    ) -> None:
        self._file, self._journal, self.known = file, journal, known
        self._learnt = known.among(pool)
        self.own: dict[int, str] = dict(own)
        self.skipped: dict[int, None] = {}
        self.version = 0
        self._lock = threading.RLock()
        self._steps: list[dict[str, Any]] = []
        self._seen: set[str] = set()
        self._unwritten = False
        self.keys: dict[str, str | None] = {}
        for entry in journal.past:
            self._remember(entry)
        if journal.pending is not None:
            self._apply(journal.pending)
            self._file.rewrite(self.own)
            journal.done()
        self._file.open()
        for name in dict.fromkeys([*classes, *self.counts()]):
            self.add_class(name)

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of their keys."""
        return list(self.keys)

    def label_of(self, row: int) -> str | None:
        """The label of a row, if it has one."""
        return self.own.get(row) or self.known.get(row)

    def labelled(self) -> dict[int, str]:
        """Labels to learn from: all answers, over those from elsewhere that are in the pool."""
        with self._lock:
            return {**self._learnt, **self.own}

    def counts(self) -> Counter[str]:
        """Rows of each class that there are, in all data."""
        with self._lock:
            counts = self.known.counts()
            counts.subtract(label for row in self.own if (label := self.known.get(row)) is not None)
            counts.update(self.own.values())
        return +counts

    def all_labels(self) -> Iterator[tuple[int, str]]:
        """All labels, the answers first."""
        with self._lock:
            own = dict(self.own)
        yield from own.items()
        for row in self.known.rows.tolist():
            if row not in own:
                yield row, self.known.get(row) or ""

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return bool(self._steps)

    def label(self, rows: Sequence[int], name: str, answer: str) -> None:
        """Give rows a label; it is on disk when this returns."""
        name = class_name(name)
        with self._lock:
            self._catch_up()
            if answer not in self._seen:
                was = [self.own.get(row) for row in rows]
                self._do(
                    {"do": "label", "answer": answer, "rows": [*rows], "label": name, "was": was}
                )

    def skip(self, row: int, answer: str) -> None:
        """Put a row aside."""
        with self._lock:
            self._catch_up()
            if answer not in self._seen:
                self._do({"do": "skip", "answer": answer, "rows": [row]})

    def undo(self, answer: str) -> dict[str, Any] | None:
        """Take the last step back; return its rows and the label that they had been given."""
        with self._lock:
            self._catch_up()
            if answer in self._seen or not self._steps:
                return None
            step = self._steps[-1]
            self._do({"do": "undo", "answer": answer, "rows": step["rows"], "was": step.get("was")})
            return {"rows": step["rows"], "label": step.get("label")}

    def add_class(self, name: str) -> None:
        """Add a class that has no rows yet."""
        name = class_name(name)
        with self._lock:
            if name not in self.keys:
                self._do({"do": "class", "name": name})

    def rename(self, name: str, to: str) -> None:
        """Call a class something else, in all labels."""
        to = class_name(to)
        with self._lock:
            self._catch_up()
            if name not in self.keys:
                raise LabelError(f"there is no class {name!r}; it may have been renamed already.")
            if to == name:
                return
            if to in self.keys:
                raise LabelError(
                    f"there is a class {to!r} already; choose another name, or give the rows of "
                    f"{name!r} that label."
                )
            rows = [row for row, label in self.own.items() if label == name]
            rows += [row for row in self.known.rows_called(name) if row not in self.own]
            self._do({"do": "rename", "name": name, "label": to, "rows": rows})

    def close(self) -> None:
        """Close the files, and let another process have them."""
        with self._lock:
            self._file.close()
            self._journal.close()

    def _do(self, entry: dict[str, Any]) -> None:
        """Write down what is to be done, then do it; it is on disk when this returns."""
        self._journal.begin(entry)
        self._remember(entry)
        if entry["do"] in ("skip", "class") or (entry["do"] == "undo" and entry["was"] is None):
            self._journal.done()
            return
        fresh = entry["do"] == "label" and not any(row in self.own for row in entry["rows"])
        self._apply(entry)
        self._write(entry if fresh else None)

    def _write(self, fresh: dict[str, Any] | None = None) -> None:
        """Bring the file of labels to what is known now: lines at its end, or all of it anew."""
        self._unwritten = True
        self.version += 1
        if fresh is not None:
            self._file.append(fresh["rows"], fresh["label"])
        else:
            self._file.close()
            self._file.rewrite(self.own)
            self._file.open()
        self._unwritten = False
        self._journal.done()

    def _catch_up(self) -> None:
        """Write what could not be written before, such as on a full disk."""
        if self._unwritten:
            self._write()

    def _apply(self, entry: Mapping[str, Any]) -> None:
        """Change labels as an entry says; twice is as good as once."""
        if entry["do"] in ("label", "rename"):
            self.own.update(dict.fromkeys(entry["rows"], entry["label"]))
        elif entry["do"] == "undo" and entry["was"] is not None:
            for row, label in zip(entry["rows"], entry["was"], strict=True):
                if label is None:
                    self.own.pop(row, None)
                else:
                    self.own[row] = label

    def _remember(self, entry: dict[str, Any]) -> None:
        """Everything that an entry changes besides labels."""
        do, back = entry["do"], []
        if "answer" in entry:
            self._seen.add(entry["answer"])
        if do in ("label", "class"):
            name = entry["label" if do == "label" else "name"]
            if name not in self.keys:  # its own name where that is a free digit, or the first
                free = [key for key in DIGITS if key not in self.keys.values()]
                own_key = name in free or name == "0"
                self.keys[name] = name if own_key else next(iter(free), None)
        if do == "rename":
            old, to = entry["name"], entry["label"]
            self.keys = {to if name == old else name: key for name, key in self.keys.items()}
            for step in self._steps:  # what a step back restores has the new name too
                if "was" in step:
                    step["was"] = [to if label == old else label for label in step["was"]]
                if step.get("label") == old:
                    step["label"] = to
        elif do == "skip":
            self.skipped |= dict.fromkeys(entry["rows"])
        elif do == "label":
            back = entry["rows"]
        elif do == "undo" and self._steps:
            step = self._steps.pop()
            back = step["rows"] if step["do"] == "skip" else []
        for row in back:
            self.skipped.pop(row, None)
        if do in ("label", "skip"):
            self._steps = [*self._steps[1 - REMEMBERED :], entry]
