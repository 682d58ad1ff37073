"""Between the computer's memory and a card, through page-locked buffers.

A card copies by itself, at the full speed of the bus, only from and to pages that the system cannot
move. Arrays are elsewhere, so several threads bring them piece by piece into such buffers, two for
each thread: while one is being copied, the next piece is read into the other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

PIECE_BYTES = 8 << 20
LANES = 8
"""Threads that read pieces; one alone copies at a fifth of the speed of the bus."""
PINNED_BYTES = 2 * LANES * PIECE_BYTES
"""What the buffers take of the computer's memory."""

Reader = Callable[[int, int], np.ndarray]


def upload(read: Reader, out: Any) -> None:
    """Fill a tensor with rows.

    Parameters
    ----------
    read : callable
        ``read(start, stop)`` returns rows, counted from the tensor's first, in its type.
    out : torch tensor of shape (b, m)
    """
    pieces = _pieces(out)
    if out.device.type == "cuda":
        _in_lanes(partial(_upload_lane, read=read), out, pieces)
        return
    for start, stop in pieces:
        out[start:stop] = _tensor(read(start, stop))


def download(tensor: Any, out: np.ndarray) -> None:
    """Copy a tensor to an array of the same shape in the computer's memory.

    Several threads also spread the work of giving a large new array its pages.
    """
    if tensor.device.type == "cuda":
        _in_lanes(partial(_download_lane, out=out), tensor, _pieces(tensor))
    else:
        out[...] = tensor.numpy()


def _pieces(tensor: Any) -> list[tuple[int, int]]:
    """First and last rows of the pieces of a tensor."""
    n_rows = tensor.shape[0]
    step = max(PIECE_BYTES * n_rows // max(tensor.numel() * tensor.element_size(), 1), 1)
    return [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _in_lanes(run: Callable[[Lane], None], tensor: Any, pieces: list[tuple[int, int]]) -> None:
    """Let threads share the pieces out, each with buffers and a stream of its own."""
    ready = sys.modules["torch"].cuda.current_stream(tensor.device).record_event()
    n_lanes = min(LANES, len(pieces), os.cpu_count() or 1)
    lanes = [Lane(tensor, pieces[number::n_lanes], ready) for number in range(n_lanes)]
    with ThreadPoolExecutor(max(n_lanes, 1)) as pool:
        for _ in pool.map(run, lanes):
            pass


class Lane:
    """Two page-locked buffers, and a stream that copies between them and a tensor.

    Parameters
    ----------
    tensor : torch tensor on a card
    pieces : sequence of (int, int)
        What is to be copied: first row and last row (exclusive).
    ready : torch.cuda.Event
        What was asked of the card before: the tensor may still be in use until then.
    """

    def __init__(self, tensor: Any, pieces: Sequence[tuple[int, int]], ready: Any) -> None:
        torch = sys.modules["torch"]
        largest = max(stop - start for start, stop in pieces)
        shape = (2, largest, *tensor.shape[1:])
        self.tensor, self.pieces = tensor, pieces
        self.buffers = torch.empty(shape, dtype=tensor.dtype, pin_memory=True)
        self.stream = torch.cuda.Stream(tensor.device)
        self.stream.wait_event(ready)

    def copy(self, target: Any, origin: Any) -> Any:
        """Begin a copy; return the event of its end."""
        with sys.modules["torch"].cuda.stream(self.stream):
            target.copy_(origin, non_blocking=True)
            return self.stream.record_event()


def _upload_lane(lane: Lane, read: Reader) -> None:
    copied: list[Any] = [None, None]
    for number, (start, stop) in enumerate(lane.pieces):
        turn = number % 2
        if copied[turn] is not None:
            copied[turn].synchronize()
        part = lane.buffers[turn, : stop - start]
        part.numpy()[...] = read(start, stop)
        copied[turn] = lane.copy(lane.tensor[start:stop], part)
    lane.stream.synchronize()


def _download_lane(lane: Lane, out: np.ndarray) -> None:
    waiting: list[Any] = []
    for number, (start, stop) in enumerate(lane.pieces):
        part = lane.buffers[number % 2, : stop - start]
        waiting.append((start, stop, part, lane.copy(part, lane.tensor[start:stop])))
        if len(waiting) == 2:
            _arrive(waiting.pop(0), out)
    for last in waiting:
        _arrive(last, out)


def _arrive(piece: tuple[int, int, Any, Any], out: np.ndarray) -> None:
    """Take a piece out of its buffer, once it is there."""
    start, stop, part, copied = piece
    copied.synchronize()
    out[start:stop] = part.numpy()


def _tensor(rows: np.ndarray) -> Any:
    return sys.modules["torch"].from_numpy(rows if rows.flags.writeable else rows.copy())
