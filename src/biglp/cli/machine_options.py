"""The options that say what the work may use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from biglp.cli.values import option

_machine = partial(option, rich_help_panel="Machine")

Threads = Annotated[
    int | None,
    _machine(metavar="N", min=1, help="Threads; by default one a core, as far as memory allows."),
]


@dataclass(frozen=True)
class Machine:
    """What the work may use."""

    memory: Annotated[
        str,
        _machine(
            metavar="SIZE",
            help="Memory that the whole process may take, such as 4GB; auto is half of what is "
            "free.",
        ),
    ] = "auto"
    threads: Threads = None
    engine: Annotated[
        str,
        _machine(
            metavar="threads|serial|mpi|dask",
            help="What runs the work; the answer is the same.",
        ),
    ] = "threads"
    device: Annotated[
        str,
        _machine(
            metavar="cpu|cuda|auto",
            help="Where the arithmetic runs; auto is the GPU where it is worth it.",
        ),
    ] = "cpu"
    gpu_memory: Annotated[
        str,
        _machine(metavar="SIZE", help="Memory of the GPU that may be taken; auto is most of it."),
    ] = "auto"
    precision: Annotated[
        str,
        _machine(metavar="float32|tf32", help="Products on a GPU; tf32 is faster, less exact."),
    ] = "float32"
