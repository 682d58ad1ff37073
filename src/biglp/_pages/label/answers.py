"""The answers of people: what each row was called, kept so that nothing is lost or counted twice.

Every change goes to disk before it is confirmed: first the journal, then the file of labels, then
the reply. A change says which rows get which labels, so that doing it twice is doing it once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from biglp._core.errors import LabelError
from biglp._pages.label.classes import class_name, free_key
from biglp._pages.label.journal import Journal
from biglp._pages.label.known import Known
from biglp._pages.label.labels_file import LabelsFile

REMEMBERED = 10_000
"""Steps that can be undone."""


class Answers:
    """Labels given on the page, the classes in the order of their keys, and steps back.

    Parameters
    ----------
    file : LabelsFile
    own : mapping of int to str
        Labels that the file holds, by row.
    journal : Journal
    known : Known
        Labels from elsewhere, which an answer overrules.
    pool : ndarray
        Rows of which labels from elsewhere are learnt, increasing.
    classes : sequence of str
        Classes that are known from the start, in order.

    Attributes
    ----------
    own : dict of int to str
    keys : dict of str to str or None
        The classes in order, and the key of each, which stays the same when a class is renamed.
    skipped : dict of int to None
    version : int
        Grows with every change of a label.
    """

    def __init__(
        self,
        file: LabelsFile,
        own: Mapping[int, str],
        journal: Journal,
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
            found = self.known.counts()
            found.subtract(label for row in self.own if (label := self.known.get(row)) is not None)
            found.update(self.own.values())
        return +found

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
            if answer in self._seen:
                return
            was = [self.own.get(row) for row in rows]
            entry = {"do": "label", "answer": answer, "rows": [*rows], "label": name, "was": was}
            self._journal.begin(entry)
            self._remember(entry)
            fresh = not any(row in self.own for row in rows)
            self._apply(entry)
            self._write(list(rows) if fresh else None, name)

    def skip(self, row: int, answer: str) -> None:
        """Put a row aside."""
        with self._lock:
            self._catch_up()
            if answer in self._seen:
                return
            entry = {"do": "skip", "answer": answer, "rows": [row]}
            self._journal.begin(entry)
            self._remember(entry)
            self._journal.done()

    def undo(self, answer: str) -> dict[str, Any] | None:
        """Take the last step back; return its rows and the label that they had been given."""
        with self._lock:
            self._catch_up()
            if answer in self._seen or not self._steps:
                return None
            step = self._steps[-1]
            entry = {"do": "undo", "answer": answer, "rows": step["rows"], "was": step.get("was")}
            self._journal.begin(entry)
            self._remember(entry)
            if step["do"] == "label":
                self._apply(entry)
                self._write()
            else:
                self._journal.done()
            return {"rows": step["rows"], "label": step.get("label")}

    def add_class(self, name: str) -> None:
        """Add a class that has no rows yet."""
        name = class_name(name)
        with self._lock:
            if name in self.classes:
                return
            entry = {"do": "class", "name": name}
            self._journal.begin(entry)
            self._remember(entry)
            self._journal.done()

    def rename(self, name: str, to: str) -> None:
        """Call a class something else, in all labels."""
        to = class_name(to)
        with self._lock:
            self._catch_up()
            if name not in self.classes:
                raise LabelError(f"there is no class {name!r}; it may have been renamed already.")
            if to == name:
                return
            if to in self.classes:
                raise LabelError(
                    f"there is a class {to!r} already; choose another name, or give the rows of "
                    f"{name!r} that label."
                )
            rows = [row for row, label in self.own.items() if label == name]
            rows += [row for row in self.known.rows_called(name) if row not in self.own]
            entry = {"do": "rename", "name": name, "label": to, "rows": rows}
            self._journal.begin(entry)
            self._remember(entry)
            self._apply(entry)
            self._write()

    def close(self) -> None:
        """Close the files, and let another process have them."""
        with self._lock:
            self._file.close()
            self._journal.close()

    def _write(self, fresh: list[int] | None = None, label: str = "") -> None:
        """Bring the file of labels to what is known now: lines at its end, or all of it anew."""
        self._unwritten = True
        self.version += 1
        if fresh is not None:
            self._file.append(fresh, label)
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
            for row in entry["rows"]:
                self.own[row] = entry["label"]
        elif entry["do"] == "undo" and entry["was"] is not None:
            for row, label in zip(entry["rows"], entry["was"], strict=True):
                if label is None:
                    self.own.pop(row, None)
                else:
                    self.own[row] = label

    def _remember(self, entry: dict[str, Any]) -> None:
        """Everything that an entry changes besides labels."""
        if "answer" in entry:
            self._seen.add(entry["answer"])
        if entry["do"] == "label":
            self._add_class(entry["label"])
            for row in entry["rows"]:
                self.skipped.pop(row, None)
        elif entry["do"] == "skip":
            self.skipped |= dict.fromkeys(entry["rows"])
        elif entry["do"] == "class":
            self._add_class(entry["name"])
        elif entry["do"] == "rename":
            self._rename_class(entry["name"], entry["label"])
        elif entry["do"] == "undo" and self._steps:
            step = self._steps.pop()
            if step["do"] == "skip":
                for row in step["rows"]:
                    self.skipped.pop(row, None)
        if entry["do"] in ("label", "skip"):
            self._steps = [*self._steps[1 - REMEMBERED :], entry]

    def _add_class(self, name: str) -> None:
        if name not in self.keys:
            self.keys[name] = free_key(name, self.keys.values())

    def _rename_class(self, name: str, to: str) -> None:
        self.keys = {to if each == name else each: key for each, key in self.keys.items()}
        for step in self._steps:  # what a step back restores has the new name too
            if "was" in step:
                step["was"] = [to if label == name else label for label in step["was"]]
            if step.get("label") == name:
                step["label"] = to
