"""Where the arithmetic runs, how exactly, and how long steps take there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from biglp._core.arrays import require_device
from biglp._core.errors import ParameterError
from biglp._core.parameters import checked

# --------------------------------------------------------------------------------------------------
# Between the computer's memory and a card, through page-locked buffers.
#
# A card copies by itself, at the full speed of the bus, only from and to pages that the system
# cannot move. Arrays are elsewhere, so several threads bring them piece by piece into such a
# buffer; while the card copies one buffer, the next is being filled.


PIECE_BYTES = 64 << 20
PINNED_BYTES = 2 * PIECE_BYTES
"""What the two buffers of a block take of the computer's memory."""
THREADS = 16
"""Threads that fill a buffer, at most; one alone copies at a fifth of the speed of the bus."""

LEAST_BYTES = 1 << 20
"""What a thread is worth."""

Reader = Callable[[int, int], np.ndarray]


def upload(read: Reader, out: Any) -> None:
    """Fill a tensor (b, m) with the rows that ``read(start, stop)`` gives."""
    pieces = _pieces(out)
    if out.device.type != "cuda":
        for start, stop in pieces:
            out[start:stop] = _tensor(read(start, stop))
        return
    buffers, copied = Buffers(out), [None, None]
    for number, (start, stop) in enumerate(pieces):
        turn = number % 2
        _wait(copied[turn])
        part = buffers.part(turn, stop - start)
        array = part.numpy()

        def fill(first: int, last: int, array: Any = array, start: int = start) -> None:
            array[first:last] = read(start + first, start + last)

        _share_out(array, fill)
        copied[turn] = buffers.copy(out[start:stop], part)
    for event in copied:
        _wait(event)


def download(tensor: Any, out: np.ndarray) -> None:
    """Copy a tensor to an array of the same shape in the computer's memory.

    Several threads also spread the work of giving a large new array its pages.
    """
    if tensor.device.type != "cuda":
        out[...] = tensor.numpy()
        return
    buffers, waiting = Buffers(tensor), list[Any]()
    for number, (start, stop) in enumerate(_pieces(tensor)):
        part = buffers.part(number % 2, stop - start)
        waiting.append((start, part, buffers.copy(part, tensor[start:stop])))
        if len(waiting) == 2:
            _arrive(waiting.pop(0), out)
    for piece in waiting:
        _arrive(piece, out)


def _arrive(piece: tuple[int, Any, Any], out: np.ndarray) -> None:
    """Take a piece out of its buffer, once it is there."""
    start, part, copied = piece
    _wait(copied)
    array = part.numpy()

    def empty(first: int, last: int) -> None:
        out[start + first : start + last] = array[first:last]

    _share_out(array, empty)


class Buffers:
    """Two page-locked buffers, and a stream that copies between them and a tensor."""

    def __init__(self, tensor: Any) -> None:
        torch = sys.modules["torch"]
        largest = max((stop - start for start, stop in _pieces(tensor)), default=0)
        shape = (2, largest, *tensor.shape[1:])
        self.buffers = torch.empty(shape, dtype=tensor.dtype, pin_memory=True)
        self.stream = torch.cuda.Stream(tensor.device)
        self.stream.wait_event(torch.cuda.current_stream(tensor.device).record_event())

    def part(self, turn: int, n_rows: int) -> Any:
        """The first rows of a buffer."""
        return self.buffers[turn, :n_rows]

    def copy(self, target: Any, origin: Any) -> Any:
        """Begin a copy; return the event of its end."""
        with sys.modules["torch"].cuda.stream(self.stream):
            target.copy_(origin, non_blocking=True)
            return self.stream.record_event()


def _pieces(tensor: Any) -> list[tuple[int, int]]:
    """First and last rows of the pieces of a tensor."""
    n_rows = tensor.shape[0]
    step = max(PIECE_BYTES * n_rows // max(tensor.numel() * tensor.element_size(), 1), 1)
    return [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _share_out(buffer: np.ndarray, act: Callable[[int, int], None]) -> None:
    """Let threads share the rows of a buffer out."""
    n_rows = len(buffer)
    n_threads = min(THREADS, os.cpu_count() or 1, -(-buffer.nbytes // LEAST_BYTES))
    if n_threads <= 1:
        act(0, n_rows)
        return
    step = -(-n_rows // n_threads)
    firsts = range(0, n_rows, step)
    for _ in _pool(os.getpid()).map(act, firsts, [min(f + step, n_rows) for f in firsts]):
        pass


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process: starting some for every block would take as long as copying."""
    return ThreadPoolExecutor(2 * min(THREADS, os.cpu_count() or 1))


def _wait(event: Any) -> None:
    if event is not None:
        event.synchronize()


def _tensor(rows: np.ndarray) -> Any:
    return sys.modules["torch"].from_numpy(rows if rows.flags.writeable else rows.copy())


# --------------------------------------------------------------------------------------------------


AUTO_WORK = 5e9
"""Rows × features × landmarks from which on "auto" takes the card. Loading torch and waking the
card takes some seconds, in which a few cores do as much; a guess, not measured."""


@dataclass(frozen=True)
class Device:
    """Where the arithmetic runs, as it was asked for."""

    device: str = "cpu"
    gpu_memory: int | None = None  # bytes of a card that may be taken; None: a share of the free
    precision: str = "float32"  # or "tf32": digits of products on a card

    @classmethod
    def of(cls, device: Any, gpu_memory: Any = "auto", precision: Any = "float32") -> Device:
        """Check what was asked for."""
        return cls(
            checked("device", device),
            checked("gpu_memory", gpu_memory),
            checked("precision", precision),
        )

    @contextmanager
    def precisely(self) -> Iterator[None]:
        """Let torch multiply float32 numbers with the digits that were asked for.

        The switch belongs to the process. Our own kernels look at it, too.
        """
        torch = sys.modules.get("torch")
        if torch is None or self.device == "cpu":
            yield
            return
        products = torch.backends.cuda.matmul
        before, products.allow_tf32 = products.allow_tf32, self.precision == "tf32"
        try:
            yield
        finally:
            products.allow_tf32 = before


def chosen_device(device: str, rows_on: str, work: float, number: int = 0) -> str:
    """The device for some rows: that where they are, or the one that was asked for.

    ``work`` is rows × features × landmarks, 0 where a card cannot be used; ``number`` that of this
    process among those on the machine, each of which takes the next card.
    """
    if rows_on != "cpu":
        if device in ("auto", rows_on, rows_on.partition(":")[0]):
            return rows_on
        raise ParameterError(
            f"X is on {rows_on}, but device={device!r}; give device='cuda' or 'auto' to work "
            "where the rows are, or X.cpu()."
        )
    if device == "auto":
        device = "cuda" if work >= AUTO_WORK and _has_card() else "cpu"
    if device == "cuda" and number:
        return f"cuda:{number % sys.modules['torch'].cuda.device_count()}"
    return device


def _has_card() -> bool:
    """Whether torch is installed and sees a card; asking loads it."""
    if find_spec("torch") is None:
        return False
    try:
        require_device("cuda")
    except ParameterError:
        return False
    return True


def is_card_full(error: BaseException) -> bool:
    """Whether an error says that a card has no memory left."""
    return type(error).__name__ == "OutOfMemoryError" and type(error).__module__ == "torch"
