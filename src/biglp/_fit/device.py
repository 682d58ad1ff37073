"""Where the arithmetic runs, and how exactly."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeVar

from biglp._core.arrays import require_device
from biglp._core.checks import one_of
from biglp._core.errors import ParameterError
from biglp._core.memory import parse_memory
from biglp._engines import Engine
from biglp._sources import Source

T = TypeVar("T")
PRECISIONS = ("float32", "tf32")
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
        auto = isinstance(gpu_memory, str) and gpu_memory == "auto"
        return cls(
            require_device(device),
            None if auto else parse_memory(gpu_memory, "gpu_memory"),
            one_of("precision", precision, PRECISIONS),
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
