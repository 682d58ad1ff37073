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
from biglp._sources.tables.arrow_columns import is_category, is_number, numbers, text
from biglp._sources.tables.encoding import Encoding, some
from biglp._sources.tables.table import TableFile, stream

MAX_CATEGORIES = 1000


def make_encoding(files: Sequence[TableFile], options: ReadOptions) -> Encoding:
    """Decide how a table becomes features, as an earlier table's did where one is given.

    A pass over the rows is made only when categories or means have to be found.
    """
    known = options.encoding
    if known is not None and known.columns is not None:
        columns = known.columns_of(files[0].schema.names, files[0].name)
        _check_all_have(files, columns)
        _check_kinds(files, [column for column in columns if column not in known.categories])
        return known
    columns = _chosen(files[0], options)
    _check_all_have(files, columns)
    if known is not None:
        _check_kinds(files, columns)
        return _by_position(known, columns, files[0].name)
    types = [[file.schema.field(column).type for file in files] for column in columns]
    texts = [column for column, kinds in zip(columns, types, strict=True) if is_category(kinds[0])]
    _refuse_unusable(files[0], columns, texts, options)
    plain = [kinds for column, kinds in zip(columns, types, strict=True) if column not in texts]
    _check_kinds(files, [column for column in columns if column not in texts])
    categories, means = _scan(files, columns, texts, options)
    dtype = _common_dtype([kind for kinds in plain for kind in kinds], options)
    return Encoding(columns, len(columns), dtype.str, categories, means)


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


def _check_all_have(files: Sequence[TableFile], columns: Sequence[str]) -> None:
    for file in files[1:]:
        absent = [column for column in columns if column not in file.schema.names]
        if absent:
            raise BadRowsError(
                f"{file.name} has no column {some(absent)}, which {files[0].name} has; "
                "the files of one table need the same columns."
            )


def _check_kinds(files: Sequence[TableFile], columns: Sequence[str]) -> None:
    """Every file must hold numbers in the columns that are numbers."""
    for file in files:
        wrong = [column for column in columns if is_category(file.schema.field(column).type)]
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
    return replace(known, columns=columns)


def _refuse_unusable(
    file: TableFile, columns: Sequence[str], texts: Sequence[str], options: ReadOptions
) -> None:
    def kinds(names: Sequence[str]) -> str:
        shown = [
            f"{name!r} ({file.schema.field(name).type}{file.text_example(name)})"
            for name in names[:8]
        ]
        return ", ".join(shown) + (f" and {len(names) - 8} more" if len(names) > 8 else "")

    other = [
        column
        for column in columns
        if column not in texts
        and not is_number(file.schema.field(column).type)
        and not pa.types.is_null(file.schema.field(column).type)
    ]
    if other:
        raise BadRowsError(
            f"{file.name}: columns {kinds(other)} hold neither numbers nor text. Leave them out "
            "(drop=, --drop), choose the feature columns (columns=, --columns), or turn them into "
            "numbers first."
        )
    if texts and options.categorical == "error":
        raise BadRowsError(
            f"{file.name}: columns {kinds(texts)} hold text, and features must be numbers. Turn "
            "each category into a feature of its own with categorical='onehot' "
            "(--categorical onehot), or leave the columns out (drop=, --drop)."
        )


def _scan(
    files: Sequence[TableFile], columns: Sequence[str], texts: Sequence[str], options: ReadOptions
) -> tuple[dict[str, tuple[str, ...]], tuple[float, ...] | None]:
    """Find categories and means in one pass over the columns that need it."""
    fill = options.missing == "mean"
    needed = columns if fill else texts
    if not needed:
        return {}, None
    found: dict[str, set[str]] = {column: set() for column in texts}
    sums = dict.fromkeys(columns, 0.0)
    counts = dict.fromkeys(columns, 0)
    for batch in stream(files, needed):
        for column in needed:
            values = batch.column(column)
            if column in found:
                found[column].update(_distinct(values, column, files[0].name))
                _check_few(found[column], column, files[0].name)
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


def _distinct(values: Any, column: str, name: str) -> list[str]:
    distinct = pc.unique(text(values)).drop_null()
    if len(distinct) > MAX_CATEGORIES:
        _too_many(column, name)
    return distinct.to_pylist()


def _check_few(found: set[str], column: str, name: str) -> None:
    if len(found) > MAX_CATEGORIES:
        _too_many(column, name)


def _too_many(column: str, name: str) -> None:
    raise BadRowsError(
        f"{name}: column {column!r} has more than {MAX_CATEGORIES:,} different texts, too many for "
        "a feature each; it may be a name or a number of the row. Leave it out (drop=, --drop)."
    )


def _common_dtype(kinds: Sequence[Any], options: ReadOptions) -> np.dtype[Any]:
    """The narrowest type that holds every number column, and NaN where means are asked for."""
    if options.dtype is not None:
        return np.dtype(options.dtype)
    dtypes = [_numpy_dtype(kind) for kind in kinds] or [np.dtype(np.float32)]
    if options.missing == "mean":
        dtypes.append(np.dtype(np.float32))
    return np.result_type(*dtypes)


def _numpy_dtype(kind: Any) -> np.dtype[Any]:
    if pa.types.is_boolean(kind):
        return np.dtype(np.uint8)
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return np.dtype(np.float64)
    return np.dtype(kind.to_pandas_dtype())
