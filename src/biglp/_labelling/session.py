"""One labelling session: rows, answers, and a model that follows them in the background."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BigLPError, LabelError, ParameterError
from biglp._core.progress import Progress, Task
from biglp._core.settings import Settings
from biglp._engines import make_engine
from biglp._graph.graph import Graph
from biglp._jobs.job import Job
from biglp._labelling.answers import Answers, History, Known, LabelsFile, class_name
from biglp._labelling.learner import Fit, Learner, PoolSource, draw_pool, pool_size, stored_bytes
from biglp._labelling.map import MapMaker
from biglp._labelling.view import View, make_view
from biglp._rows import Source, as_source

# --------------------------------------------------------------------------------------------------
# The thread that keeps model and suggestions up to date, so that no answer waits for a fit.


logger = logging.getLogger("biglp")

LONGEST_STEP = 10.0
"""Seconds that the end of the server waits for a step; nothing is lost with it."""
WHY_FIRST = "A typical row: many others are like it."
WHY_RANDOM = "A row drawn at random, while better ones are being looked for."
WHY_SUGGESTED = "The model is in doubt here, and many rows are like this one."
WHY_SKIPPED = "You skipped this row; nothing else is left."


class Loop:
    """Builds the graph, then fits whenever labels have changed, and calls ``changed`` after it."""

    def __init__(self, learner: Learner, answers: Answers, changed: Callable[[], None]) -> None:
        self.learner, self._answers, self._changed = learner, answers, changed
        self.fit: Fit | None = None  # the last
        self.state = "none"  # or "fitting", "ready"
        self.history: list[dict[str, float]] = []  # estimated accuracy over the number of labels
        self.problem: str | None = None  # what went wrong in the last fit
        self.graph: Graph | None = None
        self.after_graph: list[Callable[[], None]] = []
        self._first: np.ndarray | None = None
        rng = np.random.default_rng(learner.seed)
        self._random = learner.pool.rows[rng.permutation(learner.pool.n_rows)]
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="biglp-loop", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Say that labels have changed."""
        self._wake.set()

    def stop(self) -> None:
        """End, after the step that is being taken."""
        self._end.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(LONGEST_STEP)

    def renamed(self, name: str, to: str) -> None:
        """Take over the new name of a class at once; the model is the same."""
        fit = self.fit
        if fit is not None:
            classes = [to if label == name else label for label in fit.classes]
            self.fit = replace(fit, classes=classes)
        self.wake()

    def next_rows(self) -> Iterator[tuple[int, str]]:
        """Rows to label next and why, the most wanted first; labelled rows are left out."""
        answers, fit, seen = self._answers, self.fit, set[int]()
        first = [] if self._first is None else self._first.tolist()
        suggested = [] if fit is None else fit.suggested.tolist()
        queues = ((first, WHY_FIRST), (suggested, WHY_SUGGESTED), (self._random, WHY_RANDOM))
        for rows, why in queues:
            for row in map(int, rows):
                if row not in seen and row not in answers.skipped and not answers.label_of(row):
                    seen.add(row)
                    yield row, why
        for row in list(answers.skipped):
            if not answers.label_of(row):
                yield row, WHY_SKIPPED

    def _run(self) -> None:
        try:
            self._first = self.learner.prepare()
            self.graph = self.learner.graph
            self._changed()
            self.learner.sum()
        except Exception as error:
            self._failed(error)
            return
        for follow in self.after_graph:
            follow()
        self._changed()
        while True:
            self._wake.clear()
            if self._end.is_set():
                return
            try:
                self._fit_if_needed()
                # Ask the rows that the last fit has not asked, until there are new labels.
                fit = self.fit
                while fit is not None and fit.stale and not self._wake.is_set():
                    fit = self.learner.complete(fit)
                    if not fit.stale:
                        self.fit = fit
                        self._changed()
            except Exception as error:
                self._failed(error)
            self._wake.wait()

    def _fit_if_needed(self) -> None:
        version, labels = self._answers.version, self._answers.labelled()
        if self.fit is not None and self.fit.version == version:
            return
        if len(set(labels.values())) < 2:
            if self.fit is not None or self.state != "none":
                self.fit, self.state = None, "none"
                self._changed()
            return
        self.state = "fitting"
        self._changed()
        self.fit = fit = self.learner.fit(labels, version, self.fit)
        self.graph, self.problem = fit.graph, None
        if fit.estimate is not None:  # of several fits with as many labels, the last
            low, high = fit.estimate["interval"]
            point = {"labels": fit.n_labels, "accuracy": fit.estimate["accuracy"]}
            earlier = [item for item in self.history if item["labels"] < fit.n_labels]
            self.history = [*earlier, {**point, "low": low, "high": high}]
        self.state = "ready" if self._answers.version == version else "fitting"
        self._changed()
        if self.state == "fitting":
            self._wake.set()

    def _failed(self, error: Exception) -> None:
        known = isinstance(error, BigLPError)
        self.problem = str(error) if known else f"unexpected {type(error).__name__}: {error}"
        if not known:
            logger.exception("the model of the labelling page could not be fitted")
        self.state = "none" if self.fit is None else "ready"
        self._changed()


# --------------------------------------------------------------------------------------------------
# The end of a session: a fit of all rows with all labels, in the background.


class StoppedError(Exception):
    """The server ends while rows are being fitted."""


@dataclass
class _Sweep(Task):
    """A sweep whose rows are counted."""

    show: Callable[[str, int, int], None] = lambda label, done, total: None
    done: int = 0

    def advance(self, rows: int) -> None:
        self.done += rows
        self.show(self.label, self.done, self.n_rows)


class FinishProgress(Progress):
    """Progress that a page shows."""

    def __init__(self, show: Callable[[str, int, int], None]) -> None:
        self.show = show

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a sweep; a step without rows is not shown."""
        if not n_rows:
            return Task(label, n_rows)
        self.show(label, 0, n_rows)
        return _Sweep(label, n_rows, self.show)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a download."""
        return self.start(label, n_bytes)


class Finishing:
    """Runs a fit once it is asked for, again when it is asked for again; then calls ``changed``."""

    def __init__(self, job: Job, changed: Callable[[], None]) -> None:
        self._job, self._changed = job, changed
        self._state: dict[str, Any] = {"state": "no"}
        self._thread: threading.Thread | None = None
        self._end = threading.Event()
        self._lock = threading.Lock()

    def state(self) -> dict[str, Any]:
        """How far it is."""
        empty = dict.fromkeys(("step", "folder", "message"))
        return {**empty, "done": 0, "total": 0, "files": [], **self._state}

    def start(self) -> None:
        """Begin, unless it has begun."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._state = {"state": "running", "folder": str(self._job.output)}
            self._thread = threading.Thread(target=self._run, name="biglp-finish", daemon=True)
            self._thread.start()
        self._changed()

    def stop(self) -> None:
        """End at the next block of rows."""
        self._end.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _show(self, step: str, done: int, total: int) -> None:
        if self._end.is_set():
            raise StoppedError
        self._state = {**self._state, "step": step, "done": done, "total": total}
        self._changed()

    def _run(self) -> None:
        folder = str(self._job.output)
        try:
            summary = replace(self._job, overwrite=True).run(FinishProgress(self._show))
            files = list(summary["files"].values())
            self._state = {"state": "done", "folder": folder, "files": files}
        except StoppedError:
            return
        except Exception as error:
            known = isinstance(error, (BigLPError, OSError))
            message = str(error) if known else f"unexpected {type(error).__name__}: {error}"
            if not known:
                logger.exception("the fit of all rows failed")
            self._state = {"state": "failed", "folder": folder, "message": message}
        self._changed()


# --------------------------------------------------------------------------------------------------


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

    ``job`` has rows, labels and method as for the fit at the end; the last file of labels is the
    one that answers are written to.
    """

    job: Job
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

    ``id`` is another one after a restart; ``version`` grows with every change that the page may
    want to show.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted, self.id, self.version = wanted, secrets.token_hex(8), 0
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        journal = History(wanted.path)
        try:
            self._open(journal)
        except BaseException:
            journal.give_up()
            raise

    def _open(self, journal: History) -> None:
        wanted, job = self.wanted, self.wanted.job
        job.settings()  # parameters before files: they are the quicker to refuse
        classes = [class_name(name) for name in wanted.classes]
        self.memory = job.memory
        label_input = replace(job, labels=job.labels[:-1]).label_input
        reading = {**job.reading, **label_input.not_features, "cache": wanted.cache}
        self.source: Source = as_source(label_input.files, **reading)
        known = Known()
        if job.labels[:-1] or job.label_column is not None:
            labels = label_input.pairs(self.source.n_rows)[0]
            known = Known(labels.rows, labels.values)
        self.view: View = make_view(
            self.source, label_input, show=wanted.show, images=wanted.images, shape=wanted.shape
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
        path, n_rows, own = self.wanted.path, self.source.n_rows, dict[int, str]()
        if self.view.id_column is not None:
            rows_of = self.view.rows_of_ids([key for key, _ in lines])
            for key, label in lines:
                if key not in rows_of:
                    raise LabelError(
                        f"{path} has a label for {key!r}, which is no entry of column "
                        f"{self.view.id_column!r} of the rows; give another file (--labels), or "
                        "the rows that these labels belong to."
                    )
                own.update(dict.fromkeys(rows_of[key], label))
            return own
        for key, label in lines:
            row = int(key) if key.isascii() and key.isdigit() else -1
            if not 0 <= row < n_rows:
                raise LabelError(
                    f"{path} has a label for row {key!r}, but the rows are 0 to {n_rows - 1:,}; "
                    "give another file (--labels), or the rows that these labels belong to."
                )
            own[row] = label
        return own

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
