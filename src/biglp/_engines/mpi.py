"""MPI: every rank runs the same program and works on its own share of the blocks.

A sum costs each rank two collective calls whatever the number of rows: the highest level of every
number (1 byte), then its three slices (24 bytes); see :mod:`biglp._engines.exact`. Both are plain
MPI maxima and sums, exact in any order, so MPI may reduce as it likes and the bits stay the same.

Before that the ranks agree that all went well: each reports to rank 0, which also draws progress
for all, and rank 0 announces the outcome. When one rank fails the others are told to stop after the
block they are at, and the same error is raised on every rank.
"""

from __future__ import annotations

import hashlib
import pickle
import socket
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from biglp._arrays import to_numpy
from biglp._blocks import Block
from biglp._engines.base import BlockFunction, Engine, EngineError, T, count_rows, cut_runs, sum_run
from biglp._engines.exact import ExactSum, Layout, Slices
from biglp._engines.launcher import check_launcher, end_together_on_errors, poll, speaks_for_launcher
from biglp._engines.local import ThreadEngine, available_cores
from biglp._errors import MissingExtraError
from biglp._progress import Progress, Task

_REPORT, _STOP = 1, 2  # message tags
_SECONDS_BETWEEN_COUNTS = 0.2


class MpiEngine(Engine):
    """Ranks of an MPI job, each with its own threads.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        The ranks that work together; by default all of the job. Every one of them must make the
        same calls with the same rows and parameters.
    n_threads : int, optional
        Threads of this rank; by default the cores of the node over the ranks on it.

    Attributes
    ----------
    bytes_sent : Counter
        Bytes this rank has handed to MPI, by sweep; the small reports are under "agreement".
    """

    def __init__(self, comm: Any = None, n_threads: int | None = None) -> None:
        self._mpi = load_mpi()
        world = self._mpi.COMM_WORLD
        end_together_on_errors(self._mpi, world if comm is None else comm)
        check_launcher(world.Get_size())
        self._comm = _private(self._mpi, world if comm is None else comm)
        self.rank, self.n_ranks = self._comm.Get_rank(), self._comm.Get_size()
        self.is_root = self.rank == 0 and speaks_for_launcher(world)
        super().__init__()
        self.n_threads = n_threads or _threads_per_rank(self._mpi, self._comm)
        self._threads = ThreadEngine(self.n_threads)
        self.bytes_sent: Counter[str] = Counter()
        self._fingerprints: dict[str, str] = {}

    @property
    def progress(self) -> Progress:
        """Who is told how far a sweep is: rank 0 draws for all, the others stay quiet."""
        return self._progress

    @progress.setter
    def progress(self, progress: Progress) -> None:
        self._progress = progress if self.is_root else Progress()

    def sum_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "sum"
    ) -> tuple[Any, ...]:
        """Add up the tuples of small arrays that ``func`` returns for each block."""
        total = ExactSum()
        mine = [run for run in cut_runs(blocks) if run.owner(self.n_ranks) == self.rank]

        def finish() -> tuple[Layout, ...] | None:
            for keyed in total.keyed.values():
                keyed.settle()
            return total.layout

        function = partial(sum_run, func=func)
        layout = self._sweep("sum", label, blocks, function, mine, total.add, finish)
        if layout is not None:
            total.begin(layout)
            self._reduce(total.dense, label)
            for keyed in total.keyed.values():
                keyed.widen(*self._gather(keyed.keys, label))
                self._reduce(keyed.sum, label)
        return total.result()

    def map_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "map"
    ) -> list[Any]:
        """Return ``func(block)`` for every block, in block order."""
        mine, places, place = [], [], 0
        for run in cut_runs(blocks):
            if run.owner(self.n_ranks) == self.rank:
                mine += run.blocks
                places += range(place, place + len(run.blocks))
            place += len(run.blocks)
        results: list[Any] = []
        payload = b""

        def finish() -> None:
            nonlocal payload  # made before the ranks agree, so that what cannot be sent is an error
            payload = pickle.dumps((places, results), pickle.HIGHEST_PROTOCOL)

        self._sweep("map", label, blocks, func, mine, results.append, finish)
        gathered: list[Any] = [None] * len(blocks)
        self.bytes_sent[label] += len(payload)
        for part in self._comm.allgather(payload):
            for place, result in zip(*pickle.loads(part), strict=True):
                gathered[place] = result
        return gathered

    def once(self, action: Callable[[], T]) -> T:
        """Do something on rank 0 and return its result, or raise its error, on every rank."""
        result, failure, own = None, None, None
        if self.rank == 0:
            try:
                result = action()
            except Exception as error:
                own, failure = error, _pack(error)
        result, failure = self._comm.bcast((result, failure), root=0)
        if failure is not None:
            raise self._unpack(failure, 0, socket.gethostname(), own)
        return result  # type: ignore[return-value]

    def _sweep(
        self,
        verb: str,
        label: str,
        blocks: Sequence[Block],
        func: Callable[[Any], Any],
        mine: Sequence[Any],
        take: Callable[[Any], None],
        finish: Callable[[], Any],
    ) -> Any:
        """Work on this rank's share; return what the first rank that has something ``finish``-es with."""
        report = _Report(socket.gethostname(), f"{verb} {label!r} over {len(blocks)} blocks")
        own = None
        with self.progress.task(label, count_rows(blocks)) as task:
            watch = _Watch(self._mpi, self._comm, task)
            try:
                report.rows, report.fingerprint = self._identify(blocks)
                with closing(self._threads.results(func, mine)) as results:  # type: ignore[type-var]
                    for item, result in zip(mine, results, strict=True):
                        take(result)
                        if watch.advance(item.n_rows):
                            break
                report.finding = finish()
            except Exception as error:
                own, report.failure = error, _pack(error)
            verdict = watch.conclude(report)
            self.bytes_sent["agreement"] += watch.bytes_sent
            if verdict.failure is not None:
                raise self._unpack(verdict.failure, verdict.culprit, verdict.host, own)
        return verdict.finding

    def _reduce(self, total: Slices, label: str) -> None:
        """Add the sums of all ranks, exactly, on every rank."""
        if self.n_ranks == 1:
            return
        levels = total.levels()
        self._comm.Allreduce(self._mpi.IN_PLACE, levels, op=self._mpi.MAX)
        total.lift_to_levels(levels)
        self._comm.Allreduce(self._mpi.IN_PLACE, total.slices, op=self._mpi.SUM)
        self.bytes_sent[label] += levels.nbytes + total.slices.nbytes

    def _gather(self, keys: np.ndarray, label: str) -> list[np.ndarray]:
        self.bytes_sent[label] += keys.nbytes
        return list(self._comm.allgather(keys))

    def _identify(self, blocks: Sequence[Block]) -> tuple[str, str]:
        """What this rank sees: in words, and as a fingerprint that must be the same everywhere."""
        if not blocks:
            return "no rows", ""
        source, plan = blocks[0].source, blocks[0].plan
        token = plan.token if plan else ""
        if not token or token not in self._fingerprints:
            self._fingerprints[token] = _fingerprint(source)
        name = getattr(source, "name", type(source).__name__)
        rows = f"{source.n_rows:,} rows in {plan.n_blocks if plan else '?'} blocks of {name}"
        visited = (count_rows(blocks), blocks[0].index, blocks[-1].index)
        return rows, f"{rows.rpartition(' of ')[0]} {visited} {self._fingerprints[token]}"

    def _unpack(self, failure: Any, culprit: int, host: str, own: Exception | None) -> Exception:
        """Return the error of one rank with a note that says which; its own object where it rose."""
        error, text = failure
        if own is not None and culprit == self.rank:
            error, text = own, ""
        if self.n_ranks > 1 and not hasattr(error, "__notes__"):
            error.add_note(f"This happened on rank {culprit} of {self.n_ranks} ({host}).\n{text}".strip())
        return error


@dataclass
class _Report:
    """What a rank tells rank 0 when its share is done."""

    host: str
    sweep: str
    rows: str = ""
    fingerprint: str = ""
    finding: Any = None
    failure: Any = None
    rows_done: int = 0


@dataclass
class _Verdict:
    """What rank 0 tells all ranks when every share is done."""

    finding: Any = None
    failure: Any = None
    culprit: int = 0
    host: str = ""


class _Watch:
    """Messages of one sweep: rows done and reports to rank 0, the order to stop from it."""

    def __init__(self, mpi: Any, comm: Any, task: Task) -> None:
        self._mpi, self._comm, self._task = mpi, comm, task
        self._reports: dict[int, _Report] = {}
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

    def conclude(self, report: _Report) -> _Verdict:
        """Report, wait for every rank, and return the verdict."""
        verdict = None
        if self._comm.rank == 0:
            self._take(0, report)
            poll(self._all_reported)
            verdict = _judge([self._reports[rank] for rank in range(self._comm.size)])
        else:
            report.rows_done = self._unsent
            self._send(report, 0, _REPORT)
        # Sleeping until all are there leaves the cores to the ranks that still work; a plain
        # broadcast would spin.
        poll(self._comm.Ibarrier().Test)
        verdict, stopped = self._comm.bcast((verdict, self._stopped), root=0)
        if stopped and self._comm.rank != 0:
            self._comm.recv(source=0, tag=_STOP)
        self._mpi.Request.Waitall(self._requests)
        return verdict  # type: ignore[no-any-return]

    def _all_reported(self) -> bool:
        self._receive()
        return len(self._reports) == self._comm.size

    def _receive(self) -> None:
        status = self._mpi.Status()
        while self._comm.iprobe(source=self._mpi.ANY_SOURCE, tag=_REPORT, status=status):
            sender = status.Get_source()
            self._take(sender, self._comm.recv(source=sender, tag=_REPORT))

    def _take(self, sender: int, message: _Report | int) -> None:
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


def _judge(reports: list[_Report]) -> _Verdict:
    """Decide from all reports whether the sweep went well."""
    first = reports[0]
    for rank, report in enumerate(reports):
        if report.failure is not None:
            return _Verdict(None, report.failure, rank, report.host)
    for rank, report in enumerate(reports):
        if (report.sweep, report.fingerprint) != (first.sweep, first.fingerprint):
            what = "at the same step" if report.sweep != first.sweep else "given the same rows"
            error = EngineError(
                f"the ranks are not {what}: rank 0 ({first.host}) is at {first.sweep} "
                f"and sees {first.rows}; rank {rank} ({report.host}) is at {report.sweep} "
                f"and sees {report.rows}. Every rank must make the same calls with the same "
                "file and parameters; biglp shares out the rows itself."
            )
            return _Verdict(None, (error, ""), rank, report.host)
    findings = [report.finding for report in reports if report.finding is not None]
    return _Verdict(findings[0] if findings else None)


def load_mpi() -> Any:
    """Load mpi4py and the MPI library behind it."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        # mpi4py without an MPI library raises RuntimeError
        what = "mpi4py is not installed" if isinstance(error, ImportError) else str(error)
        raise MissingExtraError(
            f'engine="mpi" needs mpi4py and an MPI library ({what.splitlines()[0]}); install them '
            'with: pip install "biglp[mpich]" on a laptop, or pip install "biglp[mpi]" on a '
            "cluster that has its own MPI."
        ) from error
    return MPI


def _private(mpi: Any, comm: Any) -> Any:
    """Return a copy of the communicator for our messages alone, made once and kept with it."""
    global _copies
    if _copies is None:
        _copies = mpi.Comm.Create_keyval(delete_fn=lambda comm, key, copy: copy.Free())
    copy = comm.Get_attr(_copies)
    if copy is None:
        copy = comm.Dup()
        comm.Set_attr(_copies, copy)
    return copy


_copies: int | None = None


def _threads_per_rank(mpi: Any, comm: Any) -> int:
    """Cores of the node over the ranks that share them; ranks that are pinned share none."""
    import os

    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    node = comm.Split_type(mpi.COMM_TYPE_SHARED)
    sharing = node.allgather(cores).count(cores)
    node.Free()
    return max(1, available_cores() // sharing)


def _fingerprint(source: Any) -> str:
    """Digest of what a source holds: its own fingerprint, or else its first and last row."""
    known = getattr(source, "fingerprint", None)
    if known is not None:
        return str(known() if callable(known) else known)
    digest = hashlib.blake2b(digest_size=16)
    for start in (0, source.n_rows - 1):
        row = to_numpy(source.read(start, start + 1))
        row = np.asarray(row.toarray() if sparse.issparse(row) else row)
        digest.update(f"{row.dtype}{row.shape}".encode() + row.tobytes())
    return digest.hexdigest()


def _pack(error: Exception) -> tuple[Exception, str]:
    """Return an error that can be sent, and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = EngineError(f"{type(error).__name__}: {error}")
    return error, text
