"""One labelling session: rows, answers, and a model that follows them in the background."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import LabelError, ParameterError
from biglp._core.memory import parse_memory
from biglp._core.settings import Settings
from biglp._engines import make_engine
from biglp._jobs.fit import FitJob
from biglp._pages.label.answers import Answers
from biglp._pages.label.classes import class_name
from biglp._pages.label.finish import Finishing
from biglp._pages.label.journal import Journal
from biglp._pages.label.known import Known
from biglp._pages.label.labels_file import LabelsFile
from biglp._pages.label.learner import Learner
from biglp._pages.label.loop import Loop
from biglp._pages.label.places import MapMaker
from biglp._pages.label.pool import PoolSource, draw_pool, pool_size, stored_bytes
from biglp._pages.label.view import View, make_view
from biglp._rows import Source, as_source

LANDMARKS = 1000
"""Landmarks of the loop's graph, so that a fit takes less than a second; the fit of all rows at the
end has as many as it wants."""
SERVER_BYTES = 120 << 20
"""Memory of the server, the map and columns that are shown."""
MOST_ROWS_AT_ONCE = 100_000
"""Rows that one answer may label."""


@dataclass(frozen=True)
class Wanted:
    """What a session is about.

    Attributes
    ----------
    job : FitJob
        Rows, labels and method, as for the fit at the end; the last file of labels is the one that
        answers are written to.
    show : tuple of str
    images : Path or None
    shape : str or None
    classes : tuple of str
    """

    job: FitJob
    show: tuple[str, ...] = ()
    images: Path | None = None
    shape: str | None = None
    classes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """File of the answers."""
        return Path(self.job.labels[-1])

    @property
    def cache(self) -> str:
        """Folder for converted rows, which is there again after a restart."""
        return self.job.cache or str(self.path.with_name(f".{self.path.name}.cache"))


class Session:
    """What the page asks of the server.

    Attributes
    ----------
    id : str
        Another one after a restart.
    version : int
        Grows with every change that the page may want to show.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted, self.id, self.version = wanted, secrets.token_hex(8), 0
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        journal = Journal(wanted.path)
        try:
            self._open(journal)
        except BaseException:
            journal.give_up()
            raise

    def _open(self, journal: Journal) -> None:
        wanted, job = self.wanted, self.wanted.job
        job.settings()  # parameters before files: they are the quicker to refuse
        classes = [class_name(name) for name in wanted.classes]
        self.memory = parse_memory(job.memory_given)
        beside = replace(job, labels=job.labels[:-1]).label_input
        reading = {**job.reading, **beside.not_features, "cache": wanted.cache}
        self.source: Source = as_source(beside.files, **reading)
        known = Known()
        if job.labels[:-1] or job.label_column is not None:
            merged = beside.pairs(self.source.n_rows)[0]
            known = Known(merged.rows, merged.values)
        self.view: View = make_view(
            self.source, beside, show=wanted.show, images=wanted.images, shape=wanted.shape
        )
        file = LabelsFile(wanted.path, job.id_column or "row", self.view.keys)
        own = self._rows_of(file.read(torn=journal.pending is not None))
        row_bytes = stored_bytes(self.source) + self.view.row_bytes
        size = pool_size(self.source.n_rows, row_bytes, self.memory)
        # What the server itself holds, the rows of the pool among it.
        left = max(self.memory - SERVER_BYTES - int(size * row_bytes), 1 << 20)
        seed = int(job.parameters.get("random_state") or 0)
        labelled = np.concatenate([known.rows, np.fromiter(own, dtype=np.int64)])
        rows = draw_pool(self.source.n_rows, size, labelled, seed)
        self.view.hold(rows)
        self.answers = Answers(file, own, journal, known=known, pool=rows, classes=classes)
        pool = PoolSource(self.source, rows)
        self.engine = make_engine("threads", job.threads)
        self.engine.__enter__()
        parameters = {**job.parameters, "memory": left}
        if parameters.get("n_landmarks", "auto") == "auto":
            parameters["n_landmarks"] = min(LANDMARKS, max(len(rows) // 4, 2))
        learner = Learner(self.engine, Settings.without_labels(parameters), pool)
        self.loop = Loop(learner, self.answers, self.changed)
        self.map = MapMaker(learner, self.changed, lambda: self.loop.state == "fitting")
        self.loop.after_graph.append(self.map.start)
        finishing = replace(job, cache=wanted.cache, parameters={**job.parameters, "memory": left})
        self.finishing = Finishing(finishing, self.changed)

    def _rows_of(self, lines: list[tuple[str, str]]) -> dict[int, str]:
        """Labels of the file of answers, by row."""
        path, n_rows = self.wanted.path, self.source.n_rows
        if self.view.id_column is not None:
            places = rows_of_ids(self.view, [key for key, _ in lines])
            lost = next((key for key, _ in lines if key not in places), None)
            if lost is not None:
                raise LabelError(
                    f"{path} has a label for {lost!r}, which is no entry of column "
                    f"{self.view.id_column!r} of the rows; give another file (--labels), or the "
                    "rows that these labels belong to."
                )
            return {row: label for key, label in lines for row in places[key]}
        found = {}
        for key, label in lines:
            row = int(key) if key.isascii() and key.isdigit() else -1
            if not 0 <= row < n_rows:
                raise LabelError(
                    f"{path} has a label for row {key!r}, but the rows are 0 to {n_rows - 1:,}; "
                    "give another file (--labels), or the rows that these labels belong to."
                )
            found[row] = label
        return found

    def start(self) -> None:
        """Begin to look at the rows."""
        self.loop.start()

    def close(self) -> None:
        """End the work in the background and close the files."""
        self.finishing.stop()
        self.loop.stop()
        self.map.stop()
        self.answers.close()
        self.engine.__exit__(None, None, None)

    def changed(self) -> None:
        """Tell all pages that something is new."""
        with self._lock:
            self.version += 1
        for listener in list(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call something at every change; returns how to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def label(self, rows: Sequence[int], name: str, answer: str) -> None:
        """Give rows a label."""
        if not rows:
            raise LabelError("no row was given; choose at least one.")
        if len(rows) > MOST_ROWS_AT_ONCE:
            raise LabelError(
                f"{len(rows):,} rows are more than the {MOST_ROWS_AT_ONCE:,} that can be labelled "
                "at once; choose fewer."
            )
        checked = list(dict.fromkeys(self.check_row(row) for row in rows))
        self.answers.label(checked, name, answer)
        self.loop.wake()
        self.changed()

    def skip(self, row: int, answer: str) -> None:
        """Put a row aside."""
        self.answers.skip(self.check_row(row), answer)
        self.changed()

    def undo(self, answer: str) -> dict[str, Any] | None:
        """Take the last step back."""
        undone = self.answers.undo(answer)
        self.loop.wake()
        self.changed()
        return undone

    def rename(self, name: str, to: str) -> None:
        """Call a class something else."""
        self.answers.rename(name, to)
        self.loop.renamed(name, to)
        self.changed()

    def add_class(self, name: str) -> None:
        """Add a class."""
        self.answers.add_class(name)
        self.changed()

    def check_row(self, row: Any) -> int:
        """Refuse what is no row number."""
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < self.source.n_rows:
            raise ParameterError(
                f"{row!r} is no row; rows are numbered 0 to {self.source.n_rows - 1:,}."
            )
        return row


def rows_of_ids(view: View, ids: Sequence[str]) -> dict[str, list[int]]:
    """Rows of some IDs, found in one pass over the column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = view.beside.ids
    assert column is not None
    found: dict[str, list[int]] = {}
    wanted, start = pa.array(list(dict.fromkeys(ids)), pa.string()), 0
    for piece in column.pieces() if ids else ():
        texts = pc.cast(piece, pa.string())
        for place in np.flatnonzero(pc.is_in(texts, value_set=wanted).to_numpy(False)):
            found.setdefault(texts[int(place)].as_py(), []).append(start + int(place))
        start += len(piece)
    return found
