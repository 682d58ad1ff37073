"""The device for some rows, and how long steps take there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

from biglp._core.arrays import require_device
from biglp._core.errors import ParameterError
from biglp._engines import Engine
from biglp._sources import Source

T = TypeVar("T")
AUTO_WORK = 5e9
"""Rows × features × landmarks from which on "auto" takes the card. Loading torch and waking the
card takes some seconds, in which a few cores do as much; a guess, not measured."""


def chosen_device(device: str, source: Source, work: float, engine: Engine) -> str:
    """The device for some rows: that where they are, or the one that was asked for.

    Parameters
    ----------
    device : str
        What was asked for, checked.
    source : Source
        The rows as they are.
    work : float
        Rows × features × landmarks; 0 where a card cannot be used.
    engine : Engine
        Of several processes on one machine, each takes the next card.
    """
    if source.device != "cpu":
        if device in ("auto", source.device, source.device.partition(":")[0]):
            return source.device
        raise ParameterError(
            f"X is on {source.device}, but device={device!r}; give device='cuda' or 'auto' to work "
            "where the rows are, or X.cpu()."
        )
    if device == "auto":
        dense = not source.is_sparse
        device = "cuda" if dense and work >= AUTO_WORK and _has_card() else "cpu"
    if device == "cuda" and engine.local_number:
        count = sys.modules["torch"].cuda.device_count()
        return f"cuda:{engine.local_number % count}"
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


class Stopwatch:
    """How long the steps of a fit take.

    Attributes
    ----------
    seconds : dict of str to float
        By step.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, step: str, action: Callable[[], T]) -> T:
        """Do a step. All end with numbers in the computer's memory, so that a card is done, too."""
        began = time.perf_counter()
        found = action()
        self.seconds[step] = round(time.perf_counter() - began, 4)
        return found


def is_card_full(error: BaseException) -> bool:
    """Whether an error says that a card has no memory left."""
    return type(error).__name__ == "OutOfMemoryError" and type(error).__module__ == "torch"
