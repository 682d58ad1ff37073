"""The end of a session: a fit of all rows with all labels, in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from biglp._core.errors import BigLPError
from biglp._core.progress import Progress, Task
from biglp._jobs.fit import FitJob

logger = logging.getLogger("biglp")


class StoppedError(Exception):
    """The server ends while rows are being fitted."""


@dataclass
class _Counted(Task):
    """A sweep whose rows are counted."""

    progress: FinishProgress | None = None
    done: int = 0

    def advance(self, rows: int) -> None:
        self.done += rows
        assert self.progress is not None
        self.progress.show(self.label, self.done, self.n_rows)


class FinishProgress(Progress):
    """Progress that a page shows."""

    def __init__(self, show: Callable[[str, int, int], None]) -> None:
        self.show = show

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a sweep."""
        self.show(label, 0, n_rows)
        return _Counted(label, n_rows, self)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a download."""
        return self.start(label, n_bytes)


class Finishing:
    """Runs a fit once it is asked for; again when it is asked for again.

    Parameters
    ----------
    job : FitJob
    changed : callable
        Called when there is something new.
    """

    def __init__(self, job: FitJob, changed: Callable[[], None]) -> None:
        self._job, self._changed = job, changed
        self._state: dict[str, Any] = {"state": "no"}
        self._thread: threading.Thread | None = None
        self._end = threading.Event()
        self._lock = threading.Lock()

    def state(self) -> dict[str, Any]:
        """How far it is."""
        empty: dict[str, Any] = {
            "step": None,
            "done": 0,
            "total": 0,
            "folder": None,
            "files": [],
            "message": None,
        }
        return {**empty, **self._state}

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
