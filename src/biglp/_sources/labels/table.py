"""Labels in columns of a table: one a row, or ``row,label`` pairs, with or without weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from biglp._core.errors import LabelError, ParameterError
from biglp._sources.labels.codes import LABEL_NAMES, LabelCodes
from biglp._sources.tables.encoding import some
from biglp._sources.tables.table import TableFile, stream

ROW_NAMES = ("row", "rows", "index", "row_index")
WEIGHT_NAMES = ("weight", "weights", "confidence", "sample_weight")


def append_columns(
    codes: LabelCodes, tables: Sequence[TableFile], column: str | None, weight_column: str | None
) -> None:
    """Append the labels in columns of a table.

    Parameters
    ----------
    codes : LabelCodes
    tables : sequence of TableFile
    column, weight_column : str or None
        Columns of labels and weights; found by their names and places by default.
    """
    names = tables[0].schema.names
    if weight_column is not None and weight_column not in names:
        raise ParameterError(
            f"weight column: {tables[0].name} has no column {weight_column!r}; it has "
            f"{some(names, 20)}."
        )
    if column is None and weight_column is None:
        weight_column = _weight_column(names)
    others = [name for name in names if name != weight_column]
    row_column = _row_column(others) if column is None else None
    if column is None:
        rest = [name for name in others if name != row_column]
        if row_column is not None and len(rest) > 1:  # what biglp suggest wrote, filled in
            rest = [name for name in rest if name.lower() in LABEL_NAMES]
        if len(rest) != 1:
            raise LabelError(
                f"{tables[0].name} has columns {some(names)}; say which holds the labels with "
                "column= (--label-column), or give a file with the columns 'row' and 'label'."
            )
        column = rest[0]
    elif column not in names:
        raise ParameterError(
            f"label column: {tables[0].name} has no column {column!r}; it has {some(names, 20)}."
        )
    text = not tables[0].typed
    if text:  # classes are read as they are written, whatever they look like
        for table in tables:
            table.read_as_text(column)
    wanted = [name for name in (row_column, column, weight_column) if name is not None]
    for batch in stream(tables, wanted):
        weights = None if weight_column is None else _numbers(batch, weight_column, tables[0].name)
        rows = None if row_column is None else _row_numbers(batch, row_column, tables[0].name)
        codes.append(batch.column(column), rows=rows, text=text, weights=weights)


def _weight_column(names: list[str]) -> str | None:
    """Third column of a file of ``row``, ``label`` and ``weight``, with or without these names."""
    if len(names) != 3:
        return None
    weights = [name for name in names if name.lower() in WEIGHT_NAMES]
    if weights and any(name.lower() in ROW_NAMES for name in names):
        return weights[0]
    return names[2] if names == ["f0", "f1", "f2"] else None


def _numbers(batch: Any, column: str, name: str) -> np.ndarray:
    """A column of weights; NaN where it is empty, which labelled rows are refused for."""
    values = np.asarray(batch.column(column).to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "iufb":
        raise LabelError(f"{name}: column {column!r} must hold weights, which are numbers.")
    return values.astype(np.float64)


def _row_column(names: list[str]) -> str | None:
    named = [name for name in names if name.lower() in ROW_NAMES]
    if len(names) != 2:
        labels = [name for name in names if name.lower() in LABEL_NAMES]
        return named[0] if len(named) == len(labels) == 1 else None
    return named[0] if named else names[0] if names == ["f0", "f1"] else None


def _row_numbers(batch: Any, column: str, name: str) -> np.ndarray:
    if batch.column(column).null_count:
        raise LabelError(f"{name}: column {column!r} has empty entries.")
    values = np.asarray(batch.column(column).to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "iuf" or (values != np.floor(values)).any():
        raise LabelError(f"{name}: row numbers must be whole numbers, counted from 0.")
    return values.astype(np.int64)
