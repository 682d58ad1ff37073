"""Labels of the estimators that are in files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from biglp._core.errors import ParameterError
from biglp._core.memory import parse_memory
from biglp._labels.labels import encode_labels, weighted
from biglp._labels.reading import Gathered, LabelInput
from biglp._labels.values import given_weights


def label_files(X: Any, y: Any, asked: Any) -> LabelInput | None:
    """Where labels are, when y names files or a column holds them; None when y holds them.

    Parameters
    ----------
    X : anything that holds rows
    y : labels, a path, a list of paths or None
    asked : estimator
        Its ``label_column`` and ``id_column`` are columns of the table that X names, or of its
        ``metadata``; it says how tables are read, and the memory.
    """
    label_column, id_column, metadata = asked.label_column, asked.id_column, asked.metadata
    files = _paths(y)
    if files is None and y is not None:
        if label_column is not None:
            raise ParameterError(
                f"label_column={label_column!r}: y holds the labels, and a column would, too; give "
                "y as None or as files of labels, which count more than the column."
            )
        files = ()
    rows = X if _paths(X) else None
    if isinstance(y, str) and rows is None and y in getattr(X, "columns", ()):
        raise ParameterError(
            f"y={y!r} would be a file of labels, and is a column of X; give the labels themselves, "
            f"y=X[{y!r}], and rows without that column."
        )
    if metadata is not None and label_column is None and id_column is None:
        raise ParameterError(
            f"metadata={metadata!r}: nothing says which of its columns is wanted; name it with "
            "label_column= or id_column=."
        )
    for option, name in (("label_column", label_column), ("id_column", id_column)):
        if name is not None and rows is None and metadata is None:
            raise ParameterError(
                f"{option}={name!r} is a column of a table in files, but X is in memory; give the "
                "labels as y, and rows without that column, or name the table with metadata=."
            )
    if not files and label_column is None and id_column is None:
        return None
    return LabelInput(
        rows,
        files or (),
        label_column,
        id_column=id_column,
        reading=asked._reading(),
        metadata=metadata,
        memory=parse_memory(asked.memory),
    )


def read_labels(
    named: LabelInput | None, y: Any, n_rows: int, sample_weight: Any, classes: Any
) -> Gathered:
    """Read labels from where they are; the parameters are those of ``fit``."""
    if named is None or not named.anywhere:
        return Gathered(encode_labels(y, n_rows, sample_weight, classes), [], [])
    found = named.gather(n_rows)
    if sample_weight is None:
        return found
    weights = given_weights(sample_weight, found.labels.rows, n_rows)
    return replace(found, labels=weighted(found.labels, weights))


def _paths(value: Any) -> tuple[Any, ...] | None:
    """The paths that a value names; None for anything else."""
    if isinstance(value, (str, os.PathLike)):
        return (value,)
    if not isinstance(value, (list, tuple)) or not value:
        return None
    if all(isinstance(item, os.PathLike) for item in value):
        return tuple(value)
    # Texts may be labels: they are paths when there is a file for each.
    texts = all(isinstance(item, str) for item in value)
    return tuple(value) if texts and all(map(os.path.isfile, value)) else None
