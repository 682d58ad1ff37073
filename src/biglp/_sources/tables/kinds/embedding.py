"""A column of embeddings: a list of numbers in each row, as many features as it is long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._sources.tables.kinds.base import Column, WrongRowsError


@dataclass(frozen=True)
class Embedding(Column):
    """The numbers of a list, all lists of one length.

    Attributes
    ----------
    length : int
        Numbers in each row.
    """

    kind = "embedding"
    expects = "lists of numbers"
    length: int = 1

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``column[0]``, ``column[1]``…."""
        return tuple(f"{self.name}[{place}]" for place in range(self.length))

    @property
    def width(self) -> int:
        """Number of features."""
        return self.length

    @property
    def plain(self) -> bool:
        """Its features are numbers of the column."""
        return True

    def describe(self) -> str:
        """Say in a few words what is done with the column."""
        return f"embedding of {self.length:,} numbers"

    def takes(self, kind: Any) -> bool:
        """Lists of numbers."""
        return number_type(kind) is not None

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Copy the numbers."""
        out[:] = self.rows(values).T
        return None

    def rows(self, values: Any) -> np.ndarray:
        """The numbers of some rows, without a copy where these are in one piece.

        Returns
        -------
        rows : ndarray of shape (rows, length)

        Raises
        ------
        WrongRowsError
            When a list is missing, has a missing number, or has another length.
        """
        if not isinstance(values, pa.ChunkedArray):
            return self._rows(values)
        if values.num_chunks == 1:
            return self._rows(values.chunk(0))
        return np.concatenate([self._rows(chunk) for chunk in values.chunks])

    def _rows(self, values: Any) -> np.ndarray:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if values.null_count:
            raise WrongRowsError("has no list", np.asarray(values.is_null()))
        if pa.types.is_fixed_size_list(values.type):
            if values.type.list_size != self.length:
                found = f"has lists of {values.type.list_size:,} numbers, not {self.length:,}"
                raise WrongRowsError(found, np.ones(len(values), dtype=bool))
            numbers = values.flatten()
        else:
            bounds = values.offsets.to_numpy()
            unequal = np.diff(bounds) != self.length
            if unequal.any():
                other = int(np.diff(bounds)[unequal][0])
                found = f"has lists of {other:,} numbers where others have {self.length:,}"
                raise WrongRowsError(found, unequal)
            numbers = values.values.slice(bounds[0], bounds[-1] - bounds[0])
        if numbers.null_count:
            empty = np.asarray(numbers.is_null()).reshape(-1, self.length)
            raise WrongRowsError("has lists with missing numbers", np.asarray(empty.any(1)))
        found_numbers: np.ndarray = numbers.to_numpy(zero_copy_only=False)
        return found_numbers.reshape(-1, self.length)


def number_type(kind: Any) -> Any:
    """Type of the numbers in a column of embeddings; None where it is none."""
    if isinstance(kind, pa.BaseExtensionType):  # tensors of one shape
        kind = kind.storage_type
    types = pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return None
    inner = kind.value_type
    return inner if types.is_integer(inner) or types.is_floating(inner) else None


def numpy_type(kind: Any) -> np.dtype[Any]:
    """NumPy's name of a type of numbers; pyarrow's own way loads pandas."""
    types = pa.types
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def length_of(kind: Any, values: Any) -> int | None:
    """Length of the lists: that of the type, or of the first list; None where there is none."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    found = next((value for value in values if value.is_valid), None)
    return None if found is None else len(found)
