"""How the columns of a table become numeric features, kept so that new files are treated alike.

An encoding is a list of columns, each of a kind (:mod:`.kinds`) that says how many features it has
and how they are filled. This module knows nothing of Arrow, so that arrays can be used where
pyarrow is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._core.registry import looked_up
from biglp._transforms import RowTransform
from biglp._transforms.text_model import Meaning

if TYPE_CHECKING:
    from biglp._tables.kinds import Column


@dataclass(frozen=True)
class Encoding:
    """From named columns (or columns by position) to features."""

    columns: tuple[Column, ...] | None  # in feature order; None where the input had no names
    n_inputs: int  # number of columns
    dtype: str  # NumPy type of the features
    means: tuple[float, ...] | None = None
    """What missing values of columns without names become; None when they are refused."""
    zero_based: bool | None = None
    """Whether a LIBSVM file counts its features from 0."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that are no features though nobody said so, and why."""
    facts: dict[str, dict[str, float]] = field(default_factory=dict)
    """What new rows are compared with: of each column the share of ``missing`` values, and the
    range (``low``, ``high``) of numbers."""
    # Worked out once, because every block of rows asks for them.
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    widths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    n_features: int = field(init=False, repr=False, compare=False)
    feature_names: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    """None where there are none, as for words."""
    words_from: int | None = field(init=False, repr=False, compare=False)
    """First feature of a sparse column, after all others; None when rows are dense."""

    def __post_init__(self) -> None:
        columns = self.columns or ()
        widths = tuple(column.width for column in columns)
        words_from = None
        if any(column.sparse for column in columns):
            words_from = sum(column.width for column in columns if not column.sparse)
        names: tuple[str, ...] | None = None
        if self.columns is not None and words_from is None:
            names = tuple(name for column in columns for name in column.feature_names)
        for attribute, value in (
            ("names", tuple(column.name for column in columns)),
            ("widths", widths),
            ("n_features", self.n_inputs if self.columns is None else sum(widths)),
            ("feature_names", names),
            ("words_from", words_from),
        ):
            object.__setattr__(self, attribute, value)

    @property
    def views(self) -> dict[str, RowTransform]:
        """What other views of the rows begin with, by their names."""
        starts, used, end = [], "", 0
        for column in self.columns or ():
            model, n_tokens = column.tokens
            end += column.width
            if n_tokens:
                starts.append(end - n_tokens)
                used = model
        return {"meaning": Meaning(used, starts=np.array(starts))} if starts else {}

    @property
    def text_columns(self) -> list[str]:
        """Columns whose words are counted."""
        return [column.name for column in self.columns or () if column.sparse]

    def column(self, name: str) -> Column | None:
        """The column of that name, or None."""
        return next((column for column in self.columns or () if column.name == name), None)

    @property
    def takes_arrays(self) -> bool:
        """Whether rows of numbers, without names, can be taken for features."""
        return all(column.plain for column in self.columns or ())

    @property
    def fillings(self) -> tuple[float | None, ...] | None:
        """What missing values of each feature become; None where all are refused."""
        if self.columns is None:
            return self.means
        fillings = tuple(filling for column in self.columns for filling in column.fillings)
        return fillings if any(filling is not None for filling in fillings) else None

    def check_names(self, available: Sequence[str], name: str) -> None:
        """Refuse a new table that lacks some of this encoding's columns."""
        absent = [column for column in self.names if column not in available]
        if absent:
            raise BadRowsError(
                f"{name} lacks {len(absent)} of the {len(self.names)} columns that the model was "
                f"fitted on: {some(absent)}. It has: {some(available)}. "
                "Give a table with the same column names (their order does not matter)."
            )

    def to_json(self) -> dict[str, Any]:
        """Return a description that JSON can hold."""
        columns = self.columns
        return {
            "columns": None if columns is None else [column.to_json() for column in columns],
            "n_inputs": self.n_inputs,
            "dtype": self.dtype,
            "means": None if self.means is None else list(self.means),
            "zero_based": self.zero_based,
            "left_out": self.left_out,
            "facts": self.facts,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Encoding:
        """Rebuild an encoding from :meth:`to_json`."""
        kinds = looked_up("biglp._tables.kinds:KINDS")
        columns, means = stored["columns"], stored["means"]
        return cls(
            columns=None
            if columns is None
            else tuple(kinds[column["kind"]].from_json(column) for column in columns),
            n_inputs=stored["n_inputs"],
            dtype=stored["dtype"],
            means=None if means is None else tuple(means),
            zero_based=stored["zero_based"],
            left_out=stored["left_out"],
            facts=stored["facts"],
        )


def some(names: Sequence[str], most: int = 8) -> str:
    """List the first few names."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
