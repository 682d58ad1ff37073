"""How the ranks of an MPI job end a sweep together: all well, or all with the same error.

Every rank reports to rank 0, which draws progress for all and announces the outcome. When a rank
fails, rank 0 tells the others to stop after the block they are at.
"""

from __future__ import annotations

import pickle
import time
import traceback
from dataclasses import dataclass
from typing import Any

from biglp._core.errors import EngineError
from biglp._core.progress import Task
from biglp._engines.exact import cannot_be_added
from biglp._engines.mpi.launcher import poll

_REPORT, _STOP = 1, 2  # message tags
_SECONDS_BETWEEN_COUNTS = 0.2


@dataclass
class Report:
    """What a rank tells rank 0 when its share is done."""

    host: str
    step: str
    rows: str = ""
    name: str = ""  # not compared: nodes may have the same file under different paths
    fingerprint: str = ""
    result: Any = None
    failure: Any = None
    rows_done: int = 0


@dataclass
class Conclusion:
    """What rank 0 tells all ranks when every share is done; ``rank`` and ``host`` of a failure."""

    result: Any = None
    failure: Any = None
    rank: int = 0
    host: str = ""


class Watch:
    """Messages of one sweep: rows done and reports to rank 0, the order to stop from it."""

    def __init__(self, mpi: Any, comm: Any, task: Task) -> None:
        self._mpi, self._comm, self._task = mpi, comm, task
        self._reports: dict[int, Report] = {}
        self._requests: list[Any] = []
        self._stopped = False
        self._unsent, self._last = 0, time.monotonic()
        self.bytes_sent = 0

    def advance(self, rows: int) -> bool:
        """Count rows as done; return True when another rank has failed."""
        if self._comm.rank == 0:
            self._task.advance(rows)
            self._receive()
            return self._stopped
        self._unsent += rows
        if time.monotonic() - self._last > _SECONDS_BETWEEN_COUNTS:
            self._send(self._unsent, 0, _REPORT)
            self._unsent, self._last = 0, time.monotonic()
        return bool(self._comm.iprobe(source=0, tag=_STOP))

    def conclude(self, report: Report) -> Conclusion:
        """Report, wait for every rank, and return what rank 0 concludes."""
        conclusion = None
        if self._comm.rank == 0:
            self._take(0, report)
            poll(self._all_reported)
            conclusion = _compare([self._reports[rank] for rank in range(self._comm.size)])
        else:
            report.rows_done = self._unsent
            self._send(report, 0, _REPORT)
        # Sleeping until all are there leaves the cores to the ranks that still work; a plain
        # broadcast would spin.
        poll(self._comm.Ibarrier().Test)
        conclusion, stopped = self._comm.bcast((conclusion, self._stopped), root=0)
        if stopped and self._comm.rank != 0:
            self._comm.recv(source=0, tag=_STOP)
        self._mpi.Request.Waitall(self._requests)
        return conclusion

    def _all_reported(self) -> bool:
        self._receive()
        return len(self._reports) == self._comm.size

    def _receive(self) -> None:
        status = self._mpi.Status()
        while self._comm.iprobe(source=self._mpi.ANY_SOURCE, tag=_REPORT, status=status):
            sender = status.Get_source()
            self._take(sender, self._comm.recv(source=sender, tag=_REPORT))

    def _take(self, sender: int, message: Report | int) -> None:
        if isinstance(message, int):
            self._task.advance(message)
            return
        self._task.advance(message.rows_done)
        self._reports[sender] = message
        if message.failure is not None and not self._stopped:
            self._stopped = True
            for rank in range(1, self._comm.size):
                self._send(None, rank, _STOP)

    def _send(self, message: Any, rank: int, tag: int) -> None:
        self.bytes_sent += len(pickle.dumps(message))
        self._requests.append(self._comm.isend(message, dest=rank, tag=tag))


def _compare(reports: list[Report]) -> Conclusion:
    """Conclude from all reports whether the sweep went well."""
    first = reports[0]
    for rank, report in enumerate(reports):
        if report.failure is not None:
            return Conclusion(None, report.failure, rank, report.host)
    for rank, report in enumerate(reports):
        one, other = f"rank 0 ({first.host})", f"rank {rank} ({report.host})"
        if report.step != first.step:
            problem = f"{one} is at {first.step}, {other} at {report.step}"
        elif report.rows != first.rows:
            problem = (
                f"{one} sees {first.rows} of {first.name}, "
                f"{other} sees {report.rows} of {report.name}"
            )
        elif report.fingerprint != first.fingerprint:
            problem = (
                f"{one} and {other} both see {first.rows}, but with other numbers in {first.name} "
                f"than in {report.name}"
            )
        else:
            continue
        error = EngineError(
            f"the ranks do not agree: {problem}. Every rank must make the same calls with the same "
            "file and parameters; biglp shares out the rows itself."
        )
        return Conclusion(None, (error, ""), rank, report.host)
    result = None  # a rank that had no blocks has none
    for rank, report in enumerate(reports):
        if result is None:
            result = report.result
        elif report.result not in (None, result):
            unlike = cannot_be_added(result, report.result)
            return Conclusion(None, (unlike, ""), rank, report.host)
    return Conclusion(result)


def pack(error: Exception) -> tuple[Exception, str]:
    """Return an error that can be sent, and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = EngineError(f"{type(error).__name__}: {error}")
    return error, text
