"""Dask: workers on any machine read and work on the blocks, the client adds up what they send.

A sweep is a few tasks for each worker, each a batch of runs; blocks travel as row numbers, the
function once a batch (once in all when it is large). Batches are added exactly on the workers, and
many of them are merged there too, so that the client receives a few sums however many workers there
are. A batch goes to the worker that did the same blocks before, or elsewhere when that one is gone.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from biglp._core.blocks import Block, Cut
from biglp._core.errors import EngineError, MissingExtraError, ParameterError
from biglp._core.progress import Task
from biglp._engines.base import BlockFunction, Engine, Run, available_cores, cut_runs
from biglp._engines.worker import (
    NEVER,
    Batch,
    Outcome,
    Piece,
    Sweep,
    do_batch,
    dumps,
    forget,
    merge,
)

# --------------------------------------------------------------------------------------------------
# Dask's own library: loading it, reaching a scheduler, and saying what its errors mean.


CONNECT_SECONDS = 30
"""Dask's own: asked for its versions, a scheduler of 2024 loads pandas before it answers."""


def load_distributed() -> Any:
    """Load Dask's distributed scheduler."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            'engine="dask" needs Dask\'s distributed scheduler, which is not installed; '
            'install it with: pip install "biglp[dask]"'
        ) from error
    return distributed


def connect(address: str) -> Any:
    """Connect to a scheduler, or say within seconds that it cannot be reached."""
    address = address.replace("dask://", "tcp://", 1)
    try:
        return load_distributed().Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address} ({error}). Check the address, and that "
            "the scheduler runs: start one with `dask scheduler` and workers with "
            f"`dask worker {address}`."
        ) from error


@contextmanager
def explained(client: Any) -> Iterator[None]:
    """Turn errors of the cluster into ones that say what to do."""
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise EngineError(
            f"several workers died one after the other while working on the same blocks ({error}); "
            "this is mostly for lack of memory. Give a smaller memory=, or workers with more."
        ) from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "biglp":
            raise
        raise EngineError(
            "a worker has no biglp; install it on every worker with: pip install biglp"
        ) from error
    except (CancelledError, OSError) as error:
        # Workers send no OSError (see worker.py): this one is about the connection.
        if client.status == "running" and not isinstance(error, (CancelledError, CommClosedError)):
            raise
        raise EngineError(
            f"the connection to the Dask scheduler at {client.scheduler.addr} was lost during a "
            f"sweep ({error}); see that it still runs."
        ) from error


# --------------------------------------------------------------------------------------------------
# Which worker works on what, as the client of remote workers sees it.
#
# The client remembers which worker did each run and in which sweep, so that a block goes back to
# the worker that holds its memory, and an old memory is never taken for a new one.


_MOST_BATCHES = 16
_SECONDS_PER_BATCH = 1.0
"""Aimed length of a batch; there are at most 16 for each thread of a worker."""


@dataclass
class PlanState:
    """What the client knows of one plan: its source, and which worker did what in which sweep."""

    source: Any
    owners: dict[int, str] = field(default_factory=dict)  # run → worker
    last_sweeps: dict[int, int] = field(default_factory=dict)  # block → sweep
    batches_per_thread: int = 2

    def share(self, runs: list[Run], threads: dict[str, int]) -> dict[tuple[str, int], list[Run]]:
        """Give each run to its owner, or to the least busy worker when the owner is gone."""
        if not self.owners:
            slots = [worker for worker in sorted(threads) for _ in range(threads[worker])]
            numbers = [Run(number, runs[0].n_runs, []) for number in range(runs[0].n_runs)]
            self.owners = {run.number: slots[run.owner(len(slots))] for run in numbers}
        load = dict.fromkeys(threads, 0.0)
        for owner in self.owners.values():
            if owner in load:
                load[owner] += 1.0 / threads[owner]
        shares: dict[tuple[str, int], list[Run]] = {}
        for run in runs:
            owner = self.owners[run.number]
            if owner not in load:
                owner = self.owners[run.number] = min(load, key=lambda worker: load[worker])
                load[owner] += 1.0 / threads[owner]
            shares.setdefault((owner, threads[owner]), []).append(run)
        return shares

    def batches(
        self, sweep: Sweep, shares: dict[tuple[str, int], list[Run]]
    ) -> list[tuple[str, Batch]]:
        """Cut each worker's share into a few batches; return them with their owners."""
        batches: list[tuple[str, Batch]] = []
        for (owner, n_threads), runs in shares.items():
            count = min(len(runs), n_threads * self.batches_per_thread)
            for i in range(count):
                part = runs[i * len(runs) // count : (i + 1) * len(runs) // count]
                pieces = [
                    [
                        Piece(b.index, b.start, b.stop, self.last_sweeps.get(b.index, NEVER))
                        for b in run.blocks
                    ]
                    for run in part
                ]
                numbers = [run.number for run in part]
                batches.append((owner, Batch(len(batches), sweep, numbers, pieces)))
        return batches

    def remember(self, batches: list[Batch], outcomes: list[Outcome], seconds: float) -> None:
        """Note where the memories are after a sweep, and how finely to cut the next one."""
        places = {number: place for o in outcomes for number, place in o.places.items()}
        for batch in batches:
            self.owners.update(dict.fromkeys(batch.run_numbers, places[batch.number]))
            sweep = batch.sweep.number
            self.last_sweeps.update((piece.number, sweep) for piece in batch.pieces)
        # Short sweeps are best in one batch a thread; long ones show progress, lose less with a
        # worker and can be shared out again when they are cut.
        self.batches_per_thread = int(min(max(seconds / _SECONDS_PER_BATCH, 1), _MOST_BATCHES))


# --------------------------------------------------------------------------------------------------


WORKER_SECONDS = 30
"""How long a sweep waits for a worker when there is none."""
_SMALL = 1 << 16  # bytes that travel within every task; more becomes a task of its own
_FAN_IN = 8


class DaskEngine(Engine):
    """Workers of a Dask cluster."""

    library_bytes = 24 << 20  # measured with distributed 2026.8: 22 MB in a worker or client
    also_accepted = ("'dask://host:port'", "a distributed.Client")

    def __init__(
        self, scheduler: Any = None, *, n_workers: int | None = None, n_threads: int = 1
    ) -> None:
        dask = load_distributed()
        self._cluster: Any = None
        self._owns_client = not isinstance(scheduler, dask.Client)
        if scheduler is None:
            self._cluster = dask.LocalCluster(
                n_workers=n_workers or available_cores(),
                threads_per_worker=n_threads,
                host="127.0.0.1",
                # With None the scheduler would still open port 8787 to the whole network.
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,  # what matters reaches the client as an error
            )
            self.client = dask.Client(self._cluster, set_as_default=False)
        elif self._owns_client:
            self.client = connect(scheduler)
        else:
            self.client = scheduler
        if self.client.asynchronous:
            raise ParameterError(
                "engine is an asynchronous distributed.Client; give one with asynchronous=False."
            )
        self._plans: dict[str, PlanState] = {}
        self._sharing: dict[frozenset[str], int] = {}  # workers → see n_sharing
        self._n_sweeps = 0

    @classmethod
    def accepts(cls, value: object) -> bool:
        """Accept the clients of distributed, and addresses of schedulers."""
        if isinstance(value, str):
            return "://" in value
        return type(value).__module__.partition(".")[0] == "distributed"

    @property
    def n_threads(self) -> int:  # type: ignore[override]  # asked anew: workers come and go
        """Threads of the worker that has most of them."""
        return max(self._threads().values())

    @property
    def n_sharing(self) -> int:  # type: ignore[override]  # counted anew: workers come and go
        """Processes on the machine with most of them: workers, and this one if it is there."""
        workers = frozenset(self._threads())
        if workers not in self._sharing:
            # A worker that dies while it is asked has no share.
            answers = self.client.run(_host_and_process, on_error="ignore")
            hosts = Counter(host for host, _ in {*answers.values(), _host_and_process()})
            self._sharing = {workers: max(hosts.values())}
        return self._sharing[workers]

    def sum_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "sum"
    ) -> tuple[Any, ...]:
        """Add up the tuples of small arrays that ``func`` returns for each block."""
        return merge(self._sweep(func, blocks, label, adds=True)[0]).total.result()

    def map_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "map"
    ) -> list[Any]:
        """Return ``func(block)`` for every block, in block order."""
        outcomes, batches = self._sweep(func, blocks, label, adds=False)
        results = {
            piece.number: result
            for outcome, batch in zip(outcomes, batches, strict=True)
            for piece, result in zip(batch.pieces, outcome.results, strict=True)
        }
        return [results[block.index] for block in blocks]

    def close(self) -> None:
        """Let the workers forget; end the client and the cluster that were started here."""
        if self.client.status == "running":
            self._forget(list(self._plans))
        self._plans.clear()
        if self._owns_client:
            self.client.close()
        if self._cluster is not None:
            self._cluster.close()

    def _sweep(
        self, func: BlockFunction, blocks: Sequence[Block], label: str, *, adds: bool
    ) -> tuple[list[Outcome], list[Batch]]:
        """Send out batches and return what they, or their merged sums, gave."""
        if not blocks:
            return [], []
        self._n_sweeps += 1
        began = time.monotonic()
        runs = cut_runs(blocks)
        plan = blocks[0].plan or Cut(len(blocks))
        state = self._state(plan, blocks[0])
        with (
            self.progress.task(label, sum(run.n_rows for run in runs)) as task,
            self.client.as_current(),
            explained(self.client),
        ):
            threads = self._threads()
            sweep = Sweep(self._n_sweeps, plan, adds, self.most_at_once)
            owned = state.batches(sweep, state.share(runs, threads))
            batches = [batch for _, batch in owned]
            function = self._parcel(dumps(func))
            again = [
                partial(self._submit, label, _do_batch, batch, function, state.source)
                for batch in batches
            ]
            futures = [send(workers=[owner]) for send, (owner, _) in zip(again, owned, strict=True)]
            self._await(futures, [batch.n_rows for batch in batches], task, again)
            while adds and len(futures) > _FAN_IN:
                groups = [futures[i : i + _FAN_IN] for i in range(0, len(futures), _FAN_IN)]
                futures = [self._submit(f"merge {label}", merge, group) for group in groups]
                self._await(futures)
            outcomes = self.client.gather(futures)
        state.remember(batches, outcomes, time.monotonic() - began)
        return outcomes, batches

    def _await(
        self,
        futures: list[Any],
        rows: Sequence[int] = (),
        task: Task | None = None,
        again: Sequence[Callable[[], Any]] = (),
    ) -> None:
        """Wait for all futures; raise the first error and drop the rest.

        Dask forgets a task that was meant for a worker which is lost while there is no other: it
        does not go to those that come later. Such tasks are put in place of the old ones by
        ``again``, for any worker, which Dask does not forget.
        """
        dask = load_distributed()
        weights = dict(zip(futures, rows, strict=True)) if rows else {}
        waiting, alone_since = set(futures), None
        while waiting:
            try:
                done, waiting = dask.wait(waiting, timeout=1, return_when="FIRST_COMPLETED")
            except TimeoutError:
                alone_since = None if self.client.nthreads() else alone_since or time.monotonic()
                if alone_since and time.monotonic() - alone_since > WORKER_SECONDS:
                    self.client.cancel(futures)
                    raise _no_workers(self.client) from None
                taken = {key for keys in self.client.processing().values() for key in keys}
                if again and not alone_since and not any(one.key in taken for one in waiting):
                    lost = [index for index, future in enumerate(futures) if future in waiting]
                    for index in lost:
                        n_rows = weights.pop(futures[index])
                        futures[index] = again[index]()
                        weights[futures[index]] = n_rows
                    waiting, again = {futures[index] for index in lost}, ()
                continue
            for future in done:
                if future.status == "error":
                    self.client.cancel(list(waiting))
                    raise future.exception()
                if task is not None:
                    task.advance(weights[future])

    def _submit(self, label: str, function: Callable[..., Any], *args: Any, **where: Any) -> Any:
        with warnings.catch_warnings():
            # An array that is in the client's memory has no other way to the workers.
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(
                function,
                *args,
                key=f"biglp {label}-{uuid4().hex}",
                pure=False,
                allow_other_workers=bool(where),
                **where,
            )

    def _parcel(self, packed: bytes) -> Any:
        """Return bytes as they are when few, or as a task from which workers fetch them."""
        # A task, unlike scattered data, is repeated when the worker that holds its result is lost.
        return packed if len(packed) < _SMALL else self._submit("send", bytes, packed)

    def _threads(self) -> dict[str, int]:
        """Threads of each worker; wait for one when there is none."""
        threads = self.client.nthreads()
        if not threads:
            try:
                self.client.wait_for_workers(1, timeout=WORKER_SECONDS)
            except TimeoutError as error:
                raise _no_workers(self.client) from error
            threads = self.client.nthreads()
        return dict(threads)

    def _state(self, plan: Cut, block: Block) -> PlanState:
        if plan.token not in self._plans:
            self._plans[plan.token] = PlanState(self._parcel(dumps(block.source)))
            end = weakref.finalize(plan, _plan_died, weakref.ref(self), plan.token)
            end.atexit = False
        return self._plans[plan.token]

    def _forget(self, tokens: list[str]) -> None:
        for token in tokens:
            self._plans.pop(token, None)
        with suppress(Exception):  # workers that are gone have forgotten
            self.client.run(forget, tokens, on_error="ignore")


def _host_and_process() -> tuple[str, int]:
    return socket.gethostname(), os.getpid()


def _do_batch(batch: Batch, function: bytes, source: bytes) -> Outcome:
    return do_batch(batch, function, source, load_distributed().get_worker().address)


def _plan_died(engine: weakref.ref[DaskEngine], token: str) -> None:
    """Let the workers forget a plan, in a thread: this is called from the garbage collector."""
    alive = engine()
    if alive is not None and token in alive._plans:
        threading.Thread(target=alive._forget, args=([token],), daemon=True).start()


def _no_workers(client: Any) -> EngineError:
    return EngineError(
        f"the Dask scheduler at {client.scheduler.addr} has had no worker for {WORKER_SECONDS} s; "
        f"start some with `dask worker {client.scheduler.addr}`."
    )
