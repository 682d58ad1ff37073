"""Which columns of a table are features, and how each becomes numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows.encoding import Encoding, some
from biglp._rows.options import ReadOptions
from biglp._sources.tables.arrow_columns import content_of
from biglp._sources.tables.decide import Decision, column_facts, decide, with_sentences
from biglp._sources.tables.kinds.base import Column
from biglp._sources.tables.kinds.embedding import Embedding, length_of, number_type, numpy_type
from biglp._sources.tables.kinds.number import Number
from biglp._sources.tables.look import first_rows
from biglp._sources.tables.problems import NoFeaturesError, refuse
from biglp._sources.tables.table import TableFile, stream


def make_encoding(files: Sequence[TableFile], options: ReadOptions) -> Encoding:
    """Decide how a table becomes features, as an earlier table's did where one is given.

    The first rows are looked at. A pass over all rows is made only over columns of which categories
    or means have to be found.
    """
    known = options.encoding
    first = files[0]
    if known is not None and known.columns is not None:
        known.check_names(first.schema.names, first.name)
        _check_files(files, known.columns)
        return known
    chosen = _chosen(first, options)
    if known is not None:
        found = _by_position(known, files, chosen, first.name)
        _check_files(files, found.columns or ())
        return found
    _check_names(files, chosen)
    lists = _embeddings(files, chosen)
    plain = [name for name in chosen if name not in lists]
    decision, looks = Decision(), {}
    if plain:
        head = first_rows(files, plain)
        guess = options.categorical == "auto"
        looks = {name: head.look(name, guess=guess) for name in plain}
        refuse(first, looks, options)
        decision = decide(files, plain, options, head, looks)
        decision = decision if lists else with_sentences(decision, options)
    if not decision.columns and not lists:
        raise NoFeaturesError.of(first, looks, decision.left_out)
    columns = _in_order([*decision.columns, *lists.values()], chosen)
    _check_files(files, columns)
    return Encoding(
        columns,
        len(columns),
        _common_dtype(files, columns, options).str,
        left_out=decision.left_out,
        facts=column_facts(decision.looks, decision.columns),
    )


def _chosen(file: TableFile, options: ReadOptions) -> tuple[str, ...]:
    available = file.schema.names
    asked = {
        "label_column": [options.label_column] if options.label_column is not None else [],
        "columns": list(options.columns or ()),
        "drop": list(options.drop),
        "text": list(options.text),
    }
    for option, names in asked.items():
        absent = [name for name in names if name not in available]
        if absent:
            raise ParameterError(
                f"{option}: {file.name} has no column {some(absent)}; it has {some(available, 20)}."
            )
    left_out = {*options.drop, *asked["label_column"]}
    if options.columns is not None:
        both = [name for name in (*options.columns, *options.text) if name in left_out]
        if both:
            raise ParameterError(
                f"{some(both)} cannot be a feature and the label column (or dropped) at once."
            )
        return (*options.columns, *(n for n in options.text if n not in options.columns))
    chosen = tuple(name for name in available if name not in left_out)
    if not chosen:
        raise BadRowsError(
            f"{file.name} has no column that can be a feature: all it has ({some(available)}) are "
            "labels, IDs or dropped. Give a table with at least one more, or drop fewer (drop=, "
            "--drop)."
        )
    return chosen


def _check_names(files: Sequence[TableFile], names: Sequence[str]) -> None:
    """Every file must have all columns."""
    for file in files:
        present = set(file.schema.names)
        absent = [name for name in names if name not in present]
        if absent:
            raise BadRowsError(
                f"{file.name} has no column {some(absent)}, which {files[0].name} has; "
                "the files of one table need the same columns."
            )


def _check_files(files: Sequence[TableFile], columns: Sequence[Column]) -> None:
    """Every file must have all columns, and numbers in those that are numbers."""
    _check_names(files, [column.name for column in columns])
    for file in files:
        wrong = [c for c in columns if not c.takes(file.schema.field(c.name).type)]
        if wrong:
            held = sorted({str(file.schema.field(c.name).type) for c in wrong})
            held = ["text" if kind in ("string", "large_string") else kind for kind in held]
            raise BadRowsError(
                f"{file.name}: columns {some([c.name for c in wrong])} hold {', '.join(held)} "
                f"where {wrong[0].expects} are expected; give "
                "the same kind of table as the model was fitted on, or as the other files are."
            )


def _embeddings(files: Sequence[TableFile], columns: Sequence[str]) -> dict[str, Embedding]:
    """Columns that hold lists of numbers, and how long these are."""
    found: dict[str, Embedding] = {}
    for column in columns:
        kind = files[0].schema.field(column).type
        if number_type(kind) is None:
            continue
        batches = stream(files, [column])
        lengths = (length_of(kind, batch.column(column)) for batch in batches)
        length = next((length for length in lengths if length is not None), None)
        if not length:
            raise BadRowsError(
                f"{files[0].name}: column {column!r} ({kind}) holds no list with numbers in it; "
                "leave it out (drop=, --drop)."
            )
        found[column] = Embedding(column, length)
    return found


def _by_position(
    known: Encoding, files: Sequence[TableFile], columns: tuple[str, ...], name: str
) -> Encoding:
    lists = _embeddings(files, columns)
    if lists and known.means is None:
        found = tuple(lists.get(column) or Number(column) for column in columns)
        if sum(column.width for column in found) == known.n_inputs:
            return replace(known, columns=found)
    if len(columns) != known.n_inputs:
        raise BadRowsError(
            f"{name} has {len(columns)} feature columns, but the model was fitted on "
            f"{known.n_inputs} features without names; give as many, in the same order."
        )
    means = known.means or (None,) * len(columns)
    numbers = tuple(Number(name, mean) for name, mean in zip(columns, means, strict=True))
    return replace(known, columns=numbers, means=None)


def _in_order(columns: Sequence[Column], names: Sequence[str]) -> tuple[Column, ...]:
    """Columns in the order of the table, or that was asked for; sparse ones come last."""
    places = {name: place for place, name in enumerate(names)}
    return tuple(sorted(columns, key=lambda column: (column.sparse, places[column.name])))


def _common_dtype(
    files: Sequence[TableFile], columns: Sequence[Column], options: ReadOptions
) -> np.dtype[Any]:
    """The narrowest type that holds every number column, and NaN where values are filled in."""
    if options.dtype is not None:
        return np.dtype(options.dtype)
    numbers = [column for column in columns if type(column) in (Number, Embedding)]
    types = [file.schema.field(column.name).type for column in numbers for file in files]
    whole = all(column.plain or column.kind in ("onehot", "words") for column in columns)
    dtypes: list[np.dtype[Any]] = (
        [np.dtype(np.float32)] if options.missing == "mean" or not types or not whole else []
    )
    for kind in types:
        kind = number_type(kind) or kind
        if pa.types.is_boolean(kind):
            dtypes.append(np.dtype(np.uint8))
        elif pa.types.is_decimal(kind) or content_of(kind) != "number":
            dtypes.append(np.dtype(np.float64))
        else:
            dtypes.append(numpy_type(kind))
    return np.result_type(*dtypes)
