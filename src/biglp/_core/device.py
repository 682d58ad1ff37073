"""Where the arithmetic runs, how exactly, and how long steps take there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeVar

from biglp._core.arrays import require_device
from biglp._core.errors import ParameterError
from biglp._core.parameters import checked

T = TypeVar("T")
AUTO_WORK = 5e9
"""Rows × features × landmarks from which on "auto" takes the card. Loading torch and waking the
card takes some seconds, in which a few cores do as much; a guess, not measured."""


@dataclass(frozen=True)
class Place:
    """Where the arithmetic runs, as it was asked for.

    Attributes
    ----------
    device : str
        "cpu", "auto", or a device of torch.
    gpu_memory : int or None
        Bytes of a card's memory that may be taken; None: a share of what is free.
    precision : {"float32", "tf32"}
        Digits of products on a card.
    """

    device: str = "cpu"
    gpu_memory: int | None = None
    precision: str = "float32"

    @classmethod
    def of(cls, device: Any, gpu_memory: Any = "auto", precision: Any = "float32") -> Place:
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

    Parameters
    ----------
    device : str
        What was asked for, checked.
    rows_on : str
        Where the rows are.
    work : float
        Rows × features × landmarks; 0 where a card cannot be used, as with sparse rows.
    number : int
        Of this process among those on the machine, each of which takes the next card.
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
