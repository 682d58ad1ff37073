"""MPI: every rank runs the same program and works on its own share of the blocks.

A sum costs each rank two collective calls whatever the number of rows: the highest level of every
number (1 byte), then its three slices (24 bytes); see :mod:`biglp._engines.exact`. Both are plain
MPI maxima and sums, exact in any order, so MPI may reduce as it likes and the bits stay the same.

Before that the ranks agree that all went well (see :mod:`.agreement`); when one rank
fails, its error is raised on every rank.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import to_numpy
from biglp._core.blocks import Block
from biglp._core.errors import EngineError, MissingExtraError
from biglp._core.progress import Progress, Task
from biglp._engines.base import BlockFunction, Engine, T, count_rows, cut_runs, sum_run
from biglp._engines.exact import ExactSum, Layout, Slices
from biglp._engines.local import ThreadEngine, available_cores
from biglp._engines.mpi.agreement import Report, Watch, pack
from biglp._engines.mpi.launcher import check_launcher, end_together_on_errors, speaks_for_launcher


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
        # One for the sweeps and one for the end, which may come in the middle of a sweep.
        self._comm, ending = _private_copies(self._mpi, world if comm is None else comm)
        end_together_on_errors(self._mpi, ending)
        check_launcher(world.Get_size())
        self.rank, self.n_ranks = self._comm.Get_rank(), self._comm.Get_size()
        self.is_root = self.rank == 0 and speaks_for_launcher(world)
        super().__init__()
        cores, self.n_machines = _cores_per_rank(self._mpi, self._comm)
        self.n_threads = n_threads or cores
        self._threads = ThreadEngine(self.n_threads)
        self.bytes_sent: Counter[str] = Counter()
        self._fingerprints: dict[str, str] = {}  # of plans
        self._agreed: set[str] = set()  # plans that all ranks see in the same way

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
        """Raise when there are fewer rows than ranks, which is hardly what was meant."""
        if n_rows < self.n_ranks:
            raise EngineError(
                f"{n_rows:,} rows cannot be shared out to {self.n_ranks:,} ranks; check the input, "
                f"or start at most {n_rows:,} of them (mpiexec -n {n_rows})."
            )

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
        """Work on this rank's share; return what ``finish`` gave on the first rank that had any."""

        def work(watch: Watch) -> Any:
            with closing(self._threads.results(func, mine)) as results:  # type: ignore[type-var]
                for item, result in zip(mine, results, strict=True):
                    take(result)
                    if watch.advance(item.n_rows):
                        break
            return finish()

        token = blocks[0].plan.token if blocks and blocks[0].plan else ""
        if token not in self._agreed:
            # Before any work: a rank that sees other rows should not be found out hours later.
            self._together(f"the start of {label!r}", blocks, Task("", 0), _nothing)
            self._agreed.add(token)
        with self.progress.task(label, count_rows(blocks)) as task:
            step = f"{verb} {label!r} over {len(blocks)} blocks"
            return self._together(step, blocks, task, work)

    def _together(
        self, step: str, blocks: Sequence[Block], task: Task, work: Callable[[Watch], Any]
    ) -> Any:
        """Do a step on every rank, and end it together: with a result or the same error."""
        report, own = Report(socket.gethostname(), step), None
        watch = Watch(self._mpi, self._comm, task)
        try:
            self._identify(blocks, report)
            report.finding = work(watch)
        except Exception as error:
            own, report.failure = error, pack(error)
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

    def _identify(self, blocks: Sequence[Block], report: Report) -> None:
        """Put into the report what this rank sees: all ranks must see the same."""
        if not blocks:
            return
        source, plan = blocks[0].source, blocks[0].plan
        token = plan.token if plan else ""
        if token not in self._fingerprints:
            self._fingerprints[token] = _fingerprint(source)
        report.name = str(getattr(source, "name", type(source).__name__))
        report.rows = f"{count_rows(blocks):,} of {source.n_rows:,} rows in {len(blocks):,} blocks"
        report.fingerprint = f"{blocks[0].index} {blocks[-1].index} {self._fingerprints[token]}"

    def _unpack(self, failure: Any, culprit: int, host: str, own: Exception | None) -> Exception:
        """Return the error of one rank with a note that says which one it was."""
        error, text = failure
        if own is not None and culprit == self.rank:
            error, text = own, ""
        if self.n_ranks > 1 and not hasattr(error, "__notes__"):
            note = f"This happened on rank {culprit} of {self.n_ranks} ({host}).\n{text}"
            error.add_note(note.strip())
        return error


def _nothing(watch: Watch) -> None:
    """Do no work: the step is there for the agreement."""


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


def _private_copies(mpi: Any, comm: Any) -> tuple[Any, Any]:
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


def _cores_per_rank(mpi: Any, comm: Any) -> tuple[int, int]:
    """Cores of the node over the ranks that share them (pinned ranks share none), and the nodes."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    node = comm.Split_type(mpi.COMM_TYPE_SHARED)
    sharing = node.allgather(cores).count(cores)
    n_nodes = sum(comm.allgather(node.Get_rank() == 0))
    node.Free()
    return max(1, available_cores() // sharing), n_nodes


def _fingerprint(source: Any) -> str:
    """Digest of three rows of a source.

    Not of its path and time, which may differ between nodes that have a copy each.
    """
    digest = hashlib.blake2b(digest_size=16)
    for start in (0, source.n_rows // 2, source.n_rows - 1):
        row = to_numpy(source.read(start, start + 1))
        row = np.asarray(row.toarray() if sparse.issparse(row) else row)
        digest.update(f"{row.dtype}{row.shape}".encode() + row.tobytes())
    return digest.hexdigest()
