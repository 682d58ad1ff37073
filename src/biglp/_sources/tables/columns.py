"""Which columns of a table are features, and how each becomes numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.errors import BadRowsError, ParameterError
from biglp._sources.options import ReadOptions
from biglp._sources.tables.arrow_columns import content_of, numbers, text
from biglp._sources.tables.encoding import Encoding, some
from biglp._sources.tables.kinds.base import Column
from biglp._sources.tables.kinds.number import Number
from biglp._sources.tables.kinds.onehot import OneHot
from biglp._sources.tables.table import TableFile, stream

MAX_CATEGORIES = 1000


def make_encoding(files: Sequence[TableFile], options: ReadOptions) -> Encoding:
    """Decide how a table becomes features, as an earlier table's did where one is given.

    A pass over the rows is made only when categories or means have to be found.
    """
    known = options.encoding
    first = files[0]
    if known is not None and known.columns is not None:
        known.check_names(first.schema.names, first.name)
        _check_files(files, known.columns)
        return known
    columns = _chosen(first, options)
    if known is not None:
        found = _by_position(known, columns, first.name)
        _check_files(files, found.columns or ())
        return found
    contents = {column: content_of(first.schema.field(column).type) for column in columns}
    texts = [column for column in columns if contents[column] == "text"]
    other = [column for column in columns if contents[column] == "other"]
    numeric = [column for column in columns if contents[column] != "text"]
    _check_files(files, [(OneHot if column in texts else Number)(column) for column in columns])
    if other or (texts and options.categorical == "error"):
        raise _not_numbers(first, texts, other)
    categories: dict[str, tuple[str, ...]] = {}
    means = None
    if texts or options.missing == "mean":
        categories, means = _scan(files, columns, texts, options)
    types = [file.schema.field(column).type for column in numeric for file in files]
    dtype = _common_dtype(types, options)
    filled = means is not None
    kinds = tuple(
        OneHot(column, categories[column], filled)
        if column in categories
        else Number(column, means[place] if means is not None else None)
        for place, column in enumerate(columns)
    )
    return Encoding(kinds, len(columns), dtype.str)


def _chosen(file: TableFile, options: ReadOptions) -> tuple[str, ...]:
    available = file.schema.names
    asked = {
        "label_column": [options.label_column] if options.label_column is not None else [],
        "columns": list(options.columns or ()),
        "drop": list(options.drop),
    }
    for option, names in asked.items():
        absent = [name for name in names if name not in available]
        if absent:
            raise ParameterError(
                f"{option}: {file.name} has no column {some(absent)}; it has {some(available, 20)}."
            )
    left_out = {*options.drop, *asked["label_column"]}
    if options.columns is not None:
        both = [name for name in options.columns if name in left_out]
        if both:
            raise ParameterError(
                f"{some(both)} cannot be a feature and the label column (or dropped) at once."
            )
        return options.columns
    chosen = tuple(name for name in available if name not in left_out)
    if not chosen:
        raise BadRowsError(f"{file.name} has no feature columns beside {some(sorted(left_out))}.")
    return chosen


def _check_files(files: Sequence[TableFile], columns: Sequence[Column]) -> None:
    """Every file must have all columns, and numbers in those that are numbers."""
    for file in files:
        absent = [column.name for column in columns if column.name not in file.schema.names]
        if absent:
            raise BadRowsError(
                f"{file.name} has no column {some(absent)}, which {files[0].name} has; "
                "the files of one table need the same columns."
            )
        wrong = [c.name for c in columns if not c.takes(file.schema.field(c.name).type)]
        if wrong:
            raise BadRowsError(
                f"{file.name}: columns {some(wrong)} hold text where numbers are expected; give "
                "the same kind of table as the model was fitted on, or as the other files are."
            )


def _by_position(known: Encoding, columns: tuple[str, ...], name: str) -> Encoding:
    if len(columns) != known.n_inputs:
        raise BadRowsError(
            f"{name} has {len(columns)} feature columns, but the model was fitted on "
            f"{known.n_inputs} features without names; give as many, in the same order."
        )
    means = known.means or (None,) * len(columns)
    numbers = tuple(Number(name, mean) for name, mean in zip(columns, means, strict=True))
    return replace(known, columns=numbers, means=None)


def _not_numbers(file: TableFile, texts: Sequence[str], other: Sequence[str]) -> BadRowsError:
    """Explain that columns hold text, or neither numbers nor text."""
    names = other or texts
    shown = ", ".join(
        f"{name!r} ({file.schema.field(name).type}{file.text_example(name)})" for name in names[:8]
    )
    shown += f" and {len(names) - 8} more" if len(names) > 8 else ""
    if other:
        return BadRowsError(
            f"{file.name}: columns {shown} hold neither numbers nor text. Leave them out "
            "(drop=, --drop), choose the feature columns (columns=, --columns), or turn them into "
            "numbers first."
        )
    return BadRowsError(
        f"{file.name}: columns {shown} hold text, and features must be numbers. Turn "
        "each category into a feature of its own with categorical='onehot' "
        "(--categorical onehot), or leave the columns out (drop=, --drop)."
    )


def _scan(
    files: Sequence[TableFile], columns: Sequence[str], texts: Sequence[str], options: ReadOptions
) -> tuple[dict[str, tuple[str, ...]], tuple[float, ...] | None]:
    """Find categories and means in one pass over the columns that need it."""
    fill = options.missing == "mean"
    needed = columns if fill else texts
    found: dict[str, set[str]] = {column: set() for column in texts}
    sums = dict.fromkeys(columns, 0.0)
    counts = dict.fromkeys(columns, 0)
    for batch in stream(files, needed):
        for column in needed:
            values = batch.column(column)
            if column in found:
                found[column].update(pc.unique(text(values)).drop_null().to_pylist())
                if len(found[column]) > MAX_CATEGORIES:
                    raise BadRowsError(
                        f"{files[0].name}: column {column!r} has more than {MAX_CATEGORIES:,} "
                        "different texts, too many for a feature each; it may be a name or a "
                        "number of the row. Leave it out (drop=, --drop)."
                    )
                continue
            array = numbers(values).astype(np.float64, copy=False)
            there = ~np.isnan(array)
            sums[column] += float(array[there].sum())
            counts[column] += int(there.sum())
    categories = {column: tuple(sorted(found[column])) for column in texts}
    if not fill:
        return categories, None
    empty = [column for column in columns if column not in found and counts[column] == 0]
    if empty:
        raise BadRowsError(
            f"{files[0].name}: columns {some(empty)} have no value at all, so there is no mean to "
            "fill them with; leave them out (drop=, --drop)."
        )
    return categories, tuple(sums[column] / max(counts[column], 1) for column in columns)


def _common_dtype(types: Sequence[Any], options: ReadOptions) -> np.dtype[Any]:
    """The narrowest type that holds every number column, and NaN where means are asked for."""
    if options.dtype is not None:
        return np.dtype(options.dtype)
    dtypes: list[np.dtype[Any]] = (
        [np.dtype(np.float32)] if options.missing == "mean" or not types else []
    )
    for kind in types:
        if pa.types.is_boolean(kind):
            dtypes.append(np.dtype(np.uint8))
        elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
            dtypes.append(np.dtype(np.float64))
        else:
            dtypes.append(np.dtype(kind.to_pandas_dtype()))
    return np.result_type(*dtypes)
