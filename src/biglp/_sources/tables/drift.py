"""How the columns of a new table differ from those that a model was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._rows.encoding import Encoding
from biglp._sources.tables.arrow_columns import missing_in, text
from biglp._sources.tables.kinds.base import Column
from biglp._sources.tables.kinds.frequency import Frequency
from biglp._sources.tables.kinds.number import Number
from biglp._sources.tables.kinds.onehot import OneHot
from biglp._sources.tables.look import first_rows
from biglp._sources.tables.table import TableFile

NAMED = 3
"""Unknown categories that are named."""


def compare_columns(files: Sequence[TableFile], encoding: Encoding) -> dict[str, Any]:
    """Compare the first rows of a table with the facts that an encoding has kept.

    Returns
    -------
    drift : dict
        ``rows`` that were compared and, of each column that differs at all, the share of its
        ``missing`` values beside that of the training rows (``missing_before``), of numbers
        ``outside`` their range, and of ``unknown`` categories with a few of them (``examples``).
        JSON values only.
    """
    known = [column for column in encoding.columns or () if column.name in encoding.facts]
    if not known:  # embeddings, or a model of an earlier release
        return {}
    table = first_rows(files, [column.name for column in known]).table
    columns = {}
    for column in known:
        values = table.column(column.name)
        found = _figures(column, encoding.facts[column.name], values)
        if found:
            columns[column.name] = found
    return {"rows": table.num_rows, "columns": columns}


def _figures(column: Column, facts: dict[str, float], values: Any) -> dict[str, Any]:
    n_rows, found = max(len(values), 1), dict[str, Any]()
    missing, before = missing_in(values) / n_rows, facts["missing"]
    if isinstance(column, Number):
        numbers = column.numbers(values).astype(np.float64, copy=False)
        missing = float(np.isnan(numbers).mean())
        if "low" in facts:
            with np.errstate(invalid="ignore"):
                outside = ((numbers < facts["low"]) | (numbers > facts["high"])).mean()
            if outside > 0:
                found = {"outside": round(float(outside), 6)}
                found |= {"low": facts["low"], "high": facts["high"]}
    whole = isinstance(column, OneHot)
    if isinstance(column, Frequency):
        whole = len(column.categories) == column.n_levels
    if whole:
        unknown = _unknown(column, values)
        if len(unknown):
            examples = unknown.unique()[:NAMED].to_pylist()
            found |= {"unknown": round(len(unknown) / n_rows, 6), "examples": examples}
    if missing > before:
        found |= {"missing": round(missing, 6), "missing_before": before}
    return found


def _unknown(column: Any, values: Any) -> Any:
    """Values that are no category of the column, missing ones left aside."""
    words = text(values).drop_null()
    known = pc.is_in(words, value_set=pa.array(column.categories, type=pa.string()))
    return words.filter(pc.invert(known))
