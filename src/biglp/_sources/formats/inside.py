"""Files that hold several arrays: which of them are the rows, and which the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._files.uri import INSIDE, split_inside
from biglp._sources.formats.arrays import check_shape

SHOWN = 12
ROW_ARRAYS = ("X", "x", "rows", "embeddings", "features")
"""Names by which rows are known among several two-dimensional arrays."""


class Facts(NamedTuple):
    """Shape and type of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


def choose(path: str, arrays: Mapping[str, Facts]) -> str:
    """Name of the array of rows in a file: the one that was named, or the only one it can be.

    Parameters
    ----------
    path : str
        The file, with ``::name`` where the user gave it.
    arrays : mapping of str to Facts
        What is in the file.
    """
    file, inside = split_inside(path)
    if inside:
        name = named(path, arrays)
        check_shape(arrays[name], path, may_be_empty=True)
        return name
    fitting = [
        name for name, facts in arrays.items() if facts.ndim == 2 and facts.dtype.kind in "fiub"
    ]
    known = [name for name in ROW_ARRAYS if name in fitting]
    if len(fitting) == 1 or known:
        return known[0] if known else fitting[0]
    reason = "several arrays that may be the rows" if fitting else "no table of numbers"
    raise BadRowsError(
        f"{file} holds {reason}; it has {_listed(arrays)}. Rows need two dimensions, rows × "
        f"features: name an array that has them, as in {file}{INSIDE}{(fitting or ['NAME'])[0]}."
    )


def named(path: str, arrays: Mapping[str, Facts]) -> str:
    """Name of the array that was asked for with ``::name``."""
    file, inside = split_inside(path)
    name = inside.removeprefix(INSIDE).strip("/")
    if name not in arrays:
        raise BadRowsError(
            f"{file} has no array {name!r}; it has {_listed(arrays)}. Name one of these after "
            f"{INSIDE}."
        )
    return name


def _listed(arrays: Mapping[str, Facts]) -> str:
    shown = [
        f"{name} ({' × '.join(f'{length:,}' for length in facts.shape) or 'one value'} "
        f"{facts.dtype})"
        for name, facts in list(arrays.items())[:SHOWN]
    ]
    more = f" and {len(arrays) - SHOWN} more" if len(arrays) > SHOWN else ""
    return ", ".join(shown) + more if shown else "none"
