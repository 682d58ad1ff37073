"""MPI: every rank runs the same program and works on its own share of the blocks.

A sum costs each rank two collective calls whatever the number of rows: the highest level of every
number (1 byte), then its three slices (24 bytes); see :mod:`biglp._engines.exact`. Both are plain
MPI maxima and sums, exact in any order, so MPI may reduce as it likes and the bits stay the same.

Before that the ranks agree that all went well; when one fails, its error is raised on every rank.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import socket
import sys
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

from biglp._core.arrays import to_numpy
from biglp._core.blocks import Block
from biglp._core.errors import EngineError, MissingExtraError
from biglp._core.progress import Progress, Task
from biglp._engines.base import (
    BlockFunction,
    Engine,
    T,
    ThreadEngine,
    available_cores,
    cut_runs,
    sum_run,
)
from biglp._engines.exact import ExactSum, Layout, Slices, cannot_be_added

# --------------------------------------------------------------------------------------------------
# How a job starts and how it ends: with the launcher it was built for, and all together.


_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
_PATIENCE = 2.0
"""Seconds a rank that fails waits for the others to fail in the same way."""

_SECONDS_TO_PRINT = 0.5
"""Time for the launcher to print the message: it may drop what an aborted job wrote last."""

_job: tuple[Any, Any] | None = None  # MPI and the communicator of the engine made last


def launched_as() -> tuple[int, int]:
    """Rank and size that the launcher gave this process; (0, 1) without a launcher."""
    size = next((int(os.environ[name]) for name in _SIZES if _is_number(name)), 1)
    rank = next((int(os.environ[name]) for name in _RANKS if _is_number(name)), 0)
    return (rank, size) if size > 1 else (0, 1)


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


def private_copies(mpi: Any, comm: Any) -> tuple[Any, Any]:
    """Return two copies of a communicator for our messages alone, made once and kept with it."""
    global _copies_key
    if _copies_key is None:
        _copies_key = mpi.Comm.Create_keyval(delete_fn=_free_copies)
    copies = comm.Get_attr(_copies_key)
    if copies is None:
        copies = comm.Dup(), comm.Dup()
        comm.Set_attr(_copies_key, copies)
    return copies


_copies_key: int | None = None


def _free_copies(comm: Any, key: int, copies: tuple[Any, Any]) -> None:
    for copy in copies:
        copy.Free()


def check_launcher(world_size: int) -> None:
    """Refuse to run as several jobs of one rank each, which is what a wrong launcher starts."""
    _, size = launched_as()
    if world_size == 1 and size > 1:
        raise EngineError(
            f"the launcher started {size} processes, but each is an MPI job of its own with 1 "
            "rank: the launcher belongs to another MPI than the library mpi4py loads. Use the "
            "mpiexec of that library (next to the Python it is installed in), or install mpi4py "
            "for the cluster's MPI."
        )


def speaks_to_user() -> bool:
    """Whether this process is the one of its job that prints.

    An engine's ``is_root`` says the same. Before there is an MPI engine, the launcher's own numbers
    decide: what is wrong then is wrong in every process.
    """
    if _job is None or _job[0].Is_finalized():
        return launched_as()[0] == 0
    mpi, comm = _job
    if mpi.COMM_WORLD.Get_size() == 1:  # perhaps one of several jobs of one rank
        return launched_as()[0] == 0
    return bool(comm.Get_rank() == 0)


def end_together_on_errors(mpi: Any, comm: Any) -> None:
    """Make an error that is not caught end every rank, with one message."""
    global _job
    first, _job = _job is None, (mpi, comm)
    if not first:
        return
    previous = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        end_together(lambda: previous(kind, error, trace))

    sys.excepthook = hook


def end_together(say: Callable[[], None]) -> None:
    """End the job with one message.

    When all ranks are ending, rank 0 says why and every process may exit as usual. When this one is
    the only one, it says why and stops the job, because the others would wait for it for ever.
    """
    if speaks_to_user():
        say()
        _flush()
    if _job is None or _job[0].Is_finalized():
        return
    mpi, comm = _job
    # All ranks of the communicator are ending when they meet here within a short time.
    together = poll(comm.Ibarrier().Test, _PATIENCE)
    if not together and not speaks_to_user():
        say()
    if not together or comm.Get_size() < mpi.COMM_WORLD.Get_size():
        _flush()
        time.sleep(_SECONDS_TO_PRINT)
        mpi.COMM_WORLD.Abort(1)  # the other ranks would wait for these


def end_by_signal(number: int) -> None:
    """End a rank that was told to end before it has met the others, by the signal that told it.

    The others wait for it, and no message can reach them. A launcher ends a job whose process was
    killed by a signal; after an exit code it lets the others wait for ever.
    """
    if launched_as()[1] == 1 or _job is not None:
        return
    _flush()
    time.sleep(_SECONDS_TO_PRINT)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def poll(ready: Callable[[], bool], patience: float = float("inf")) -> bool:
    """Wait until ``ready()``, sleeping up to 1 ms at a time; return False when out of patience."""
    began, pause = time.monotonic(), 1e-6
    while not ready():
        if time.monotonic() - began > patience:
            return False
        time.sleep(pause)
        pause = min(1.3 * pause, 1e-3)
    return True


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _is_number(name: str) -> bool:
    return os.environ.get(name, "").isdigit()


# --------------------------------------------------------------------------------------------------
# How the ranks of an MPI job end a sweep together: all well, or all with the same error.
#
# Every rank reports to rank 0, which draws progress for all and announces the outcome. When a rank
# fails, rank 0 tells the others to stop after the block they are at.


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
            poll(lambda: self._receive() == self._comm.size)
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

    def _receive(self) -> int:
        """Take what has arrived; return how many ranks have reported."""
        status = self._mpi.Status()
        while self._comm.iprobe(source=self._mpi.ANY_SOURCE, tag=_REPORT, status=status):
            sender = status.Get_source()
            self._take(sender, self._comm.recv(source=sender, tag=_REPORT))
        return len(self._reports)

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


# --------------------------------------------------------------------------------------------------


class MpiEngine(Engine):
    """Ranks of an MPI job, each with its own threads."""

    keeps_shares = takes_threads = launched = True
    library_bytes = 10 << 20  # measured with mpi4py 4.1 and MPICH 5: 8 to 9 MB on 1 to 4 ranks
    also_accepted = ("an mpi4py communicator",)

    def __init__(self, comm: Any = None, n_threads: int | None = None) -> None:
        self._mpi = load_mpi()
        world = self._mpi.COMM_WORLD
        # One for the sweeps and one for the end, which may come in the middle of a sweep.
        self._comm, ending = private_copies(self._mpi, world if comm is None else comm)
        end_together_on_errors(self._mpi, ending)
        check_launcher(world.Get_size())
        self.rank, self.n_ranks = self._comm.Get_rank(), self._comm.Get_size()
        self.is_root = speaks_to_user()
        self._progress = Progress()
        # Machines, the ranks on each, and this rank's share of its machine's cores.
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        node = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        same_cores = node.allgather(cores).count(cores)  # pinned ranks have cores of their own
        sizes = self._comm.allgather((node.Get_rank(), node.Get_size()))
        self.local_number = node.Get_rank()
        node.Free()
        self.n_machines = sum(rank == 0 for rank, _ in sizes)
        self.n_sharing = max(size for _, size in sizes)
        self._threads = ThreadEngine(n_threads or max(1, available_cores() // same_cores))
        self.n_threads = self._threads.n_threads
        self.bytes_sent: Counter[str] = Counter()
        self._fingerprints: dict[str, str] = {}  # of plans
        self._agreed: set[str] = set()  # plans that all ranks see in the same way

    @classmethod
    def speaks_to_user(cls) -> bool:
        """Whether this is the first rank, by the launcher's numbers where there is no engine."""
        return speaks_to_user()

    @classmethod
    def accepts(cls, value: object) -> bool:
        """Accept the communicators of mpi4py."""
        return type(value).__module__.partition(".")[0] == "mpi4py"

    @property
    def progress(self) -> Progress:
        """Told how far a sweep is: by rank 0 for all, the others draw nothing."""
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

        def work(watch: Watch) -> tuple[Layout, ...] | None:
            function = partial(sum_run, func=func, exact=total)
            self._work(function, mine, total.add, watch)
            for keyed in total.keyed.values():
                keyed.settle()
            for pairs in total.pairs.values():
                pairs.settle()
            return total.layout

        layout = self._sweep(f"sum {label!r}", label, blocks, work)
        if layout is not None:
            total.begin(layout)
            self._reduce(total.dense, label)
            for keyed in total.keyed.values():
                self.bytes_sent[label] += keyed.keys.nbytes
                keyed.widen(*self._comm.allgather(keyed.keys))
                self._reduce(keyed.sum, label)
            for pairs in total.pairs.values():
                if pairs.keys is not None:
                    self.bytes_sent[label] += pairs.keys.nbytes
                    pairs.widen(*self._comm.allgather(pairs.keys))
                if self.n_ranks > 1:
                    self._comm.Allreduce(self._mpi.IN_PLACE, pairs.units, op=self._mpi.SUM)
                    self.bytes_sent[label] += pairs.units.nbytes
        return total.result()

    def map_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "map"
    ) -> list[Any]:
        """Return ``func(block)`` for every block, in block order."""
        mine: list[Block] = []
        places: list[int] = []
        place = 0
        for run in cut_runs(blocks):
            if run.owner(self.n_ranks) == self.rank:
                mine += run.blocks
                places += range(place, place + len(run.blocks))
            place += len(run.blocks)
        results: list[Any] = []
        payload = b""

        def work(watch: Watch) -> None:
            nonlocal payload  # made before the ranks agree, so that what cannot be sent is an error
            self._work(func, mine, results.append, watch)
            payload = pickle.dumps((places, results), pickle.HIGHEST_PROTOCOL)

        self._sweep(f"map {label!r}", label, blocks, work)
        gathered: list[Any] = [None] * len(blocks)
        self.bytes_sent[label] += len(payload)
        for part in self._comm.allgather(payload):
            for place, result in zip(*pickle.loads(part), strict=True):
                gathered[place] = result
        return gathered

    def once(self, action: Callable[[], T]) -> T:
        """Do something on rank 0 and return its result, or raise its error, on every rank."""
        result: Any = None
        failure = own = None
        if self.rank == 0:
            try:
                result = action()
            except Exception as error:
                own, failure = error, pack(error)
        result, failure = self._comm.bcast((result, failure), root=0)
        if failure is not None:
            raise self._unpack(failure, 0, socket.gethostname(), own)
        return result

    def check_rows(self, n_rows: int) -> None:
        """Raise when there are fewer rows than ranks, which is probably a mistake."""
        if n_rows < self.n_ranks:
            raise EngineError(
                f"{n_rows:,} rows cannot be shared out to {self.n_ranks:,} ranks; check the input, "
                f"or start at most {n_rows:,} of them (mpiexec -n {n_rows})."
            )

    def _sweep(
        self, step: str, label: str, blocks: Sequence[Block], work: Callable[[Watch], Any]
    ) -> Any:
        """Work on this rank's share; return what ``work`` gave on the first rank that had any."""
        token = blocks[0].plan.token if blocks and blocks[0].plan else ""
        if token not in self._agreed:
            # Before any work: a rank that sees other rows should not be found out hours later.
            self._together(f"the start of {label!r}", blocks, Task("", 0), lambda watch: None)
            self._agreed.add(token)
        with self.progress.task(label, sum(block.n_rows for block in blocks)) as task:
            return self._together(f"{step} over {len(blocks)} blocks", blocks, task, work)

    def _work(
        self, func: Callable[[T], Any], mine: Sequence[T], take: Callable[[Any], None], watch: Watch
    ) -> None:
        """Give ``take`` the result of each of this rank's items, until another rank fails."""
        self._threads.most_at_once = self.most_at_once
        with closing(self._threads.results(func, mine)) as results:
            for item, result in zip(mine, results, strict=True):
                take(result)
                if watch.advance(item.n_rows):  # type: ignore[attr-defined]  # a block or a run
                    break

    def _together(
        self, step: str, blocks: Sequence[Block], task: Task, work: Callable[[Watch], Any]
    ) -> Any:
        """Do a step on every rank, and end it together: with a result or the same error."""
        report, own = Report(socket.gethostname(), step), None
        watch = Watch(self._mpi, self._comm, task)
        try:
            self._identify(blocks, report)
            report.result = work(watch)
        except Exception as error:
            own, report.failure = error, pack(error)
        end = watch.conclude(report)
        self.bytes_sent["agreement"] += watch.bytes_sent
        if end.failure is not None:
            raise self._unpack(end.failure, end.rank, end.host, own)
        return end.result

    def _reduce(self, total: Slices, label: str) -> None:
        """Add the sums of all ranks, exactly, on every rank."""
        if self.n_ranks == 1:
            return
        levels = total.levels()
        self._comm.Allreduce(self._mpi.IN_PLACE, levels, op=self._mpi.MAX)
        total.lift_to_levels(levels)
        self._comm.Allreduce(self._mpi.IN_PLACE, total.slices, op=self._mpi.SUM)
        self.bytes_sent[label] += levels.nbytes + total.slices.nbytes

    def _identify(self, blocks: Sequence[Block], report: Report) -> None:
        """Put into the report what this rank sees: all ranks must see the same."""
        if not blocks:
            return
        source, plan = blocks[0].source, blocks[0].plan
        token = plan.token if plan else ""
        if token not in self._fingerprints:
            # Three rows, not path and time, which may differ between nodes that have a copy each.
            digest = hashlib.blake2b(digest_size=16)
            for start in (0, source.n_rows // 2, source.n_rows - 1):
                row = to_numpy(source.read(start, start + 1))
                row = np.asarray(row.toarray() if sparse.issparse(row) else row)
                digest.update(f"{row.dtype}{row.shape}".encode() + row.tobytes())
            self._fingerprints[token] = digest.hexdigest()
        report.name = str(getattr(source, "name", type(source).__name__))
        n_rows = sum(block.n_rows for block in blocks)
        report.rows = f"{n_rows:,} of {source.n_rows:,} rows in {len(blocks):,} blocks"
        report.fingerprint = f"{blocks[0].index} {blocks[-1].index} {self._fingerprints[token]}"

    def _unpack(self, failure: Any, rank: int, host: str, own: Exception | None) -> Exception:
        """Return the error of one rank with a note that says which one it was."""
        error, text = failure
        if own is not None and rank == self.rank:
            error, text = own, ""
        if self.n_ranks > 1 and not hasattr(error, "__notes__"):
            note = f"This happened on rank {rank} of {self.n_ranks} ({host}).\n{text}"
            error.add_note(note.strip())
        return error
