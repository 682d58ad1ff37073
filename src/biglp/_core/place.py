"""Where the arithmetic runs, and how exactly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from biglp._core.arrays import require_device
from biglp._core.checks import one_of
from biglp._core.memory import parse_memory

PRECISIONS = ("float32", "tf32")


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
