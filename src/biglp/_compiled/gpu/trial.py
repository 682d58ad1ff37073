"""Which shape of tiles a kernel is launched with: found at its first use, by trying.

What is fastest depends on the card, the features and the landmarks. Each shape that is offered has
to give what plain torch gives for some rows; of those that do, the fastest is kept. A shape that
does not compile, or disagrees, is left out; when none remains, or a kernel fails later, plain torch
is used from then on, and that is told once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from biglp._core.errors import CardKernelWarning, warn_caller

TRIAL_ROWS, TIMED_ROWS, TIMES = 512, 1 << 20, 3


@dataclass(frozen=True)
class Tiles:
    """How a kernel is launched.

    Attributes
    ----------
    rows : int
        Rows of a tile.
    warps : int
        Groups of 32 threads that work on it.
    stages : int
        Tiles that are on their way at once.
    width : int
        Landmarks that rows are compared with at a time, where these are many.
    """

    rows: int
    warps: int
    stages: int
    width: int = 0


_found: dict[Hashable, Tiles | None] = {}
_told = False

Launch = Callable[[Any, Tiles], Any]


def launched(
    key: Hashable,
    rows: Any,
    shapes: Sequence[Tiles],
    launch: Launch,
    agrees: Callable[[Any, Any], bool],
    tried: Launch | None = None,
) -> Any | None:
    """Launch a kernel in its best shape; None where none can be used.

    Parameters
    ----------
    key : hashable
        What the best shape depends on.
    rows : torch tensor of shape (b, m)
    shapes : sequence of Tiles
    launch : callable
        ``launch(rows, shape)`` does the work.
    agrees : callable
        ``agrees(rows, found)`` compares with plain torch.
    tried : callable, optional
        What is tried instead of ``launch``, where that changes the rows.
    """
    try:
        if key not in _found:
            _found[key] = _best(rows, shapes, tried or launch, agrees)
        shape = _found[key]
        return None if shape is None else launch(rows, shape)
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":
            raise
        _found[key] = None
        _tell(f"{type(error).__name__}: {error}")
        return None


def _best(
    rows: Any, shapes: Sequence[Tiles], launch: Launch, agrees: Callable[[Any, Any], bool]
) -> Tiles | None:
    some, more = rows[:TRIAL_ROWS], rows[:TIMED_ROWS]
    times, problem = dict[Tiles, float](), "no result agrees with plain torch"
    for shape in shapes:
        try:
            if agrees(some, launch(some, shape)):
                times[shape] = _seconds(more, shape, launch) if len(shapes) > 1 else 0.0
        except Exception as error:  # too much shared memory, say: another shape may need less
            problem = f"{type(error).__name__}: {error}"
    if not times:
        _tell(problem)
        return None
    return min(times, key=lambda shape: times[shape])


def _seconds(rows: Any, shape: Tiles, launch: Launch) -> float:
    """Least time of a few launches."""
    wait = sys.modules["torch"].cuda.synchronize if rows.is_cuda else _nothing
    launch(rows, shape)
    least = float("inf")
    for _ in range(TIMES):
        wait()
        began = time.perf_counter()
        launch(rows, shape)
        wait()
        least = min(least, time.perf_counter() - began)
    return least


def _nothing() -> None:
    """Wait for nothing."""


def _tell(problem: str) -> None:
    global _told
    if not _told:
        _told = True
        warn_caller(
            f"a kernel for the GPU cannot be used here ({problem[:300]}); plain torch does the "
            "same work, which takes longer. Results are not concerned.",
            CardKernelWarning,
        )


def n_programs(rows: Any, tile: int, each: int = 8) -> int:
    """Programs that share the tiles: a few for each multiprocessor, not more than tiles."""
    cuda = sys.modules["torch"].cuda
    count = cuda.get_device_properties(rows.device).multi_processor_count if rows.is_cuda else 1
    return int(min(each * count, -(-rows.shape[0] // tile)))


def next_power(number: int, least: int = 16) -> int:
    """The next power of two."""
    return max(1 << (number - 1).bit_length(), least)
