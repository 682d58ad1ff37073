"""What a worker in another process keeps and does.

A batch names runs of blocks by their rows; the function and the source come along as bytes. The
worker keeps the source open and the memories of the blocks, by plan, until it is told to forget.

A memory is handed to a block only when it was last used in the sweep that the client says. It can
be out of date otherwise: the block may have been worked on elsewhere meanwhile, or a batch may be
repeated after its result was lost. What is out of date counts as missing and is rebuilt.
"""

from __future__ import annotations

import io
import mmap
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from biglp._core.blocks import Block, Cut
from biglp._core.errors import BadRowsError, BigLPError, EngineError
from biglp._core.memory import freed_is_kept
from biglp._core.threads import one_blas_thread
from biglp._engines.base import Run, sum_run
from biglp._engines.exact import ExactSum
from biglp._version import __version__

NEVER = -1
"""Sweep of a memory that does not exist yet."""


class Piece(NamedTuple):
    """A block as it travels: its rows, and the sweep in which its memory was last used."""

    number: int
    start: int
    stop: int
    last_sweep: int


@dataclass
class Sweep:
    """What all batches of one sweep have in common."""

    number: int
    plan: Cut
    adds: bool  # or results are collected
    most_at_once: int  # batches in one worker process
    version: str = __version__


@dataclass
class Batch:
    """Runs that one worker works on in one task."""

    number: int
    sweep: Sweep
    run_numbers: list[int]
    runs: list[list[Piece]]

    @property
    def pieces(self) -> list[Piece]:
        """All its blocks."""
        return [piece for run in self.runs for piece in run]

    @property
    def n_rows(self) -> int:
        """Rows in all its blocks."""
        return sum(piece.stop - piece.start for piece in self.pieces)


@dataclass
class Outcome:
    """What batches gave, and the address of the worker each was done by."""

    places: dict[int, str]
    total: ExactSum = field(default_factory=ExactSum)
    results: list[Any] = field(default_factory=list)


class _Store:
    """What a worker keeps of one plan."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._source: Any = None
        self._memories: dict[int, tuple[int, dict[str, Any]]] = {}

    def source(self, packed: bytes, worker: str) -> Any:
        """Open the source once."""
        with self._lock:
            if self._source is None:
                try:
                    self._source = pickle.loads(packed)
                except (OSError, ValueError, BigLPError) as error:
                    raise _unreachable(error, worker) from error
            return self._source

    def memory(self, piece: Piece, sweep: int) -> dict[str, Any]:
        """Return the memory of a block, empty when it is missing or out of date."""
        last_sweep, memory = self._memories.get(piece.number, (NEVER, {}))
        if last_sweep != piece.last_sweep:
            memory = {}
        # Written before the work, so that a block whose work is cut short is out of date.
        self._memories[piece.number] = (sweep, memory)
        return memory


_stores: dict[str, _Store] = {}
_batch_ended = threading.Condition()
_n_at_work = 0  # batches, in this process


def do_batch(batch: Batch, function: bytes, source: bytes, worker: str) -> Outcome:
    """Work on a batch, on the worker with the address ``worker``."""
    global _n_at_work
    sweep = batch.sweep
    if sweep.version != __version__:
        raise EngineError(
            f"worker {worker} ({socket.gethostname()}) has biglp {__version__}, but the client has "
            f"{sweep.version}; install the same version everywhere."
        )
    # Batches at work in this process share its memory. Not a semaphore of threading: sweeps of
    # several clients may allow different numbers.
    with _batch_ended:
        _batch_ended.wait_for(lambda: _n_at_work < sweep.most_at_once)
        _n_at_work += 1
    outcome = Outcome({batch.number: worker})
    try:
        store = _stores.setdefault(sweep.plan.token, _Store())
        rows = store.source(source, worker)
        func: Callable[[Block], Any] = pickle.loads(function)
        with freed_is_kept(), one_blas_thread(), _explained(worker):
            for pieces in batch.runs:
                blocks = [
                    Block(rows, *piece[:3], store.memory(piece, sweep.number), sweep.plan)
                    for piece in pieces
                ]
                if sweep.adds:
                    outcome.total.add(sum_run(Run(0, 1, blocks), func, outcome.total))
                else:
                    outcome.results += [func(block) for block in blocks]
    finally:
        with _batch_ended:
            _n_at_work -= 1
            _batch_ended.notify_all()
    return outcome


@contextmanager
def _explained(worker: str) -> Iterator[None]:
    """Say on which worker an error happened."""
    try:
        yield
    except Exception as error:
        lost_file = isinstance(error, OSError) and not isinstance(error, BigLPError)
        if lost_file or (isinstance(error, BadRowsError) and isinstance(error.__cause__, OSError)):
            raise _unreachable(error, worker) from error
        error.add_note(f"This happened on worker {worker} ({socket.gethostname()}).")
        raise


def merge(outcomes: list[Outcome]) -> Outcome:
    """Add up what several batches gave."""
    merged = Outcome({})
    for outcome in outcomes:
        merged.places.update(outcome.places)
        merged.total.merge(outcome.total)
    return merged


def forget(tokens: list[str]) -> None:
    """Drop what is kept of some plans."""
    for token in tokens:
        _stores.pop(token, None)


def dumps(thing: Any) -> bytes:
    """Pickle anything, with functions by value where need be and files by their path."""
    import cloudpickle  # type: ignore[import-untyped]  # comes with Dask

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            mapped = _mapped_file(obj) if isinstance(obj, np.ndarray) else None
            return mapped or super().reducer_override(obj)

    file = io.BytesIO()
    Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
    return file.getvalue()


def _mapped_file(array: np.ndarray) -> Any:
    """Return how to map an array from its file again, when that is where it comes from.

    The default is to send all bytes of the file.
    """
    owner: Any = array
    while owner is not None and not isinstance(getattr(owner, "base", None), mmap.mmap):
        owner = getattr(owner, "base", None)
    if not isinstance(owner, np.memmap) or owner.filename is None or owner.mode == "c":
        return None  # changes to a copy-on-write map are in no file
    first = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    region = (str(owner.filename), owner.offset, owner.nbytes)
    return _map_again, (region, first, array.shape, array.dtype, array.strides)


def _map_again(
    region: tuple[str, int, int],
    first: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    strides: tuple[int, ...],
) -> np.ndarray:
    path, offset, size = region
    raw = np.memmap(path, dtype=np.uint8, mode="r", offset=offset, shape=(size,))
    return np.ndarray(shape, dtype, raw, first, strides)


def _unreachable(error: Exception, worker: str) -> BadRowsError:
    return BadRowsError(
        f"worker {worker} ({socket.gethostname()}) cannot use a file: {error}. Workers read and "
        "write rows themselves: files must be where every worker finds them under the same path."
    )
