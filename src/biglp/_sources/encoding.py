"""How the columns of a table become numeric features, kept so that new files are treated alike.

A number column is one feature. A text column becomes one feature a category (1 where the row has
it, 0 elsewhere); a category that was not there when the model was fitted is 0 everywhere. A missing
number becomes its column's mean, a missing category 0 everywhere, when that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._errors import BadRowsError
from biglp._sources.missing import MissingTally


@dataclass(frozen=True)
class Encoding:
    """From named columns (or columns by position) to features.

    Attributes
    ----------
    columns : tuple of str or None
        Columns in feature order; None where the input had no names.
    n_inputs : int
        Number of columns.
    dtype : str
        NumPy type of the features.
    categories : dict of str to tuple of str
        Categories of each column that is one-hot encoded.
    means : tuple of float or None
        What missing values become, one number a column; None when they are refused.
    zero_based : bool or None
        Whether a LIBSVM file counts its features from 0.
    """

    columns: tuple[str, ...] | None
    n_inputs: int
    dtype: str
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    means: tuple[float, ...] | None = None
    zero_based: bool | None = None

    @property
    def widths(self) -> list[int]:
        """Features of each column."""
        if self.columns is None:
            return [1] * self.n_inputs
        one = [""]
        return [len(self.categories.get(name, one)) for name in self.columns]

    @property
    def n_features(self) -> int:
        """Number of features."""
        more = sum(len(values) - 1 for values in self.categories.values())
        return self.n_inputs + more

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features: a column's name, or ``column=category``."""
        if self.columns is None:
            return None
        names: list[str] = []
        for column in self.columns:
            values = self.categories.get(column)
            names += [column] if values is None else [f"{column}={value}" for value in values]
        return tuple(names)

    def encode(
        self, batch: Any, out: np.ndarray, rows: int | np.ndarray, missing: MissingTally
    ) -> None:
        """Fill ``out``, of shape (features, rows), from a batch of Arrow columns.

        Missing values are filled when the encoding has means, and counted in ``missing`` when not.
        ``rows`` is the number of the first row, or the numbers of all.
        """
        place = 0
        for index, (name, width) in enumerate(zip(self.columns or (), self.widths, strict=True)):
            column = batch.column(name)
            part = out[place : place + width]
            if name in self.categories:
                self._encode_categories(name, column, part, rows, missing)
            else:
                self._encode_numbers(index, column, part[0], rows, missing)
            place += width

    def _encode_numbers(
        self,
        index: int,
        column: Any,
        out: np.ndarray,
        rows: int | np.ndarray,
        missing: MissingTally,
    ) -> None:
        assert self.columns is not None
        if column.null_count and out.dtype.kind != "f":
            missing.add(self.columns[index], _numbered(rows, column.is_null()))
            return
        try:
            out[:] = numbers(column)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {self.columns[index]!r} must hold numbers and holds {column.type}: "
                f"{error}. Give the same kind of table as the model was fitted on."
            ) from error
        if out.dtype.kind != "f":
            return
        holes = np.isnan(out)
        if not holes.any():
            return
        if self.means is None:
            missing.add(self.columns[index], _numbered(rows, holes))
        else:
            out[holes] = self.means[index]

    def _encode_categories(
        self, name: str, column: Any, out: np.ndarray, rows: int | np.ndarray, missing: MissingTally
    ) -> None:
        if column.null_count and self.means is None:
            missing.add(name, _numbered(rows, column.is_null()))
        values = pa.array(self.categories[name], type=pa.string())
        found = pc.index_in(text(column), value_set=values, skip_nulls=True)
        codes = found.fill_null(-1).to_numpy()
        known = np.flatnonzero(codes >= 0)
        out[:] = 0
        out[codes[known], known] = 1

    def columns_of(self, available: Sequence[str], name: str) -> tuple[str, ...]:
        """Find this encoding's columns in a new table, by name.

        Raises
        ------
        BadRowsError
            When a column is not there.
        """
        assert self.columns is not None
        absent = [column for column in self.columns if column not in available]
        if absent:
            raise BadRowsError(
                f"{name} lacks {len(absent)} of the {len(self.columns)} columns that the model was "
                f"fitted on: {some(absent)}. It has: {some(available)}. "
                "Give a table with the same column names (their order does not matter)."
            )
        return self.columns

    def to_json(self) -> dict[str, Any]:
        """Return a description that JSON can hold."""
        return {
            "columns": None if self.columns is None else list(self.columns),
            "n_inputs": self.n_inputs,
            "dtype": self.dtype,
            "categories": {name: list(values) for name, values in self.categories.items()},
            "means": None if self.means is None else list(self.means),
            "zero_based": self.zero_based,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Encoding:
        """Rebuild an encoding from :meth:`to_json`."""
        columns, means = stored["columns"], stored["means"]
        return cls(
            columns=None if columns is None else tuple(columns),
            n_inputs=stored["n_inputs"],
            dtype=stored["dtype"],
            categories={name: tuple(values) for name, values in stored["categories"].items()},
            means=None if means is None else tuple(means),
            zero_based=stored["zero_based"],
        )


def _numbered(rows: int | np.ndarray, where: Any) -> np.ndarray:
    """Row numbers of the places where ``where`` is true."""
    positions = np.flatnonzero(np.asarray(where))
    return rows[positions] if isinstance(rows, np.ndarray) else rows + positions


def numbers(column: Any) -> np.ndarray:
    """Arrow column as NumPy numbers, missing ones as NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    elif not is_number(column.type):
        raise TypeError("not a number type")
    if isinstance(column, pa.ChunkedArray):
        return column.to_numpy()
    return column.to_numpy(zero_copy_only=False)


def text(column: Any) -> Any:
    """Arrow column as plain strings."""
    return column.cast(pa.string())


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers (truth values and decimals too)."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def is_category(kind: Any) -> bool:
    """Whether an Arrow type holds text or categories."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or str(kind) == "string_view"  # its test came with pyarrow 16
        or types.is_dictionary(kind)
    )


def some(names: Sequence[str], most: int = 8) -> str:
    """List the first few names."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
