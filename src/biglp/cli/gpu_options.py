"""The options that are about a GPU."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from biglp.cli.values import option

MACHINE = "Machine"
_machine = partial(option, rich_help_panel=MACHINE)

Device = Annotated[
    str,
    _machine(
        metavar="cpu|cuda|auto",
        help="Where the arithmetic runs; auto is the GPU where it is worth it.",
    ),
]
GpuMemory = Annotated[
    str,
    _machine(metavar="SIZE", help="Memory of the GPU that may be taken; auto is most of it."),
]
Precision = Annotated[
    str,
    _machine(metavar="float32|tf32", help="Products on a GPU; tf32 is faster, less exact."),
]
