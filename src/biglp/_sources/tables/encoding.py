"""How the columns of a table become numeric features, kept so that new files are treated alike.

A number column is one feature. A text column becomes one feature a category (1 where the row has
it, 0 elsewhere); a category that was not there when the model was fitted is 0 everywhere. A missing
number becomes its column's mean, a missing category 0 everywhere, when that was asked for.

This module knows nothing of Arrow, so that arrays can be used where pyarrow is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from biglp._core.errors import BadRowsError


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
    widths : tuple of int
        Features of each column.
    n_features : int
        Number of features.
    feature_names : tuple of str or None
        Names of the features: a column's name, or ``column=category``.
    """

    columns: tuple[str, ...] | None
    n_inputs: int
    dtype: str
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    means: tuple[float, ...] | None = None
    zero_based: bool | None = None
    widths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    n_features: int = field(init=False, repr=False, compare=False)
    feature_names: tuple[str, ...] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out the features, which every block of rows asks for."""
        names: list[str] = []
        widths: list[int] = []
        for column in self.columns or ():
            values = self.categories.get(column)
            names += [column] if values is None else [f"{column}={value}" for value in values]
            widths.append(1 if values is None else len(values))
        named = self.columns is not None
        object.__setattr__(self, "widths", tuple(widths) if named else (1,) * self.n_inputs)
        object.__setattr__(self, "n_features", sum(self.widths))
        object.__setattr__(self, "feature_names", tuple(names) if named else None)

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


def some(names: Sequence[str], most: int = 8) -> str:
    """List the first few names."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
