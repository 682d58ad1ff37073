"""Labels from files: a column of the table, one label a row, or ``row,label`` pairs.

A table may have a column of weights as well, as in ``row,label,weight``; a row may then occur
several times, which makes a label distribution.

Only the labels are read, a piece at a time, and what is kept is a small code for each row. A row is
unlabelled where its label is -1, empty, null or NaN.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from biglp._core.errors import ParameterError
from biglp._sources.formats.base import LabelColumns
from biglp._sources.labels.codes import LabelCodes
from biglp._sources.naming import cannot_read_labels, look_up


@overload
def read_labels(
    path: Any,
    n_rows: int | None = ...,
    *,
    column: str | None = ...,
    unlabelled: int | str = ...,
    sparse: Literal[False] = ...,
) -> np.ndarray: ...


@overload
def read_labels(
    path: Any,
    n_rows: int | None = ...,
    *,
    column: str | None = ...,
    unlabelled: int | str = ...,
    sparse: Literal[True],
) -> tuple[np.ndarray, np.ndarray]: ...


def read_labels(
    path: Any,
    n_rows: int | None = None,
    *,
    column: str | None = None,
    unlabelled: int | str = -1,
    sparse: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Read labels.

    Parameters
    ----------
    path : path
        ``.npy`` of one label a row; ``.txt`` of one a line; a table (CSV, Parquet, Arrow) with one
        column of labels or with columns ``row`` and ``label``; the table of the features itself,
        with ``column``; a LIBSVM file, whose lines begin with the label; or ``sim:…``.
    n_rows : int, optional
        Rows that there must be labels for; needed for ``row,label`` pairs.
    column : str, optional
        Column that holds the labels.
    unlabelled : int or str
        What marks a row without a label, beside empty, null and NaN.
    sparse : bool
        Return the labelled rows only.

    Returns
    -------
    labels : ndarray of shape (n_rows,)
        Small integers with -1 for unlabelled, or texts (dtype object) with None for unlabelled.
    rows, values : ndarrays of shape (n_labelled,)
        With ``sparse``: the labelled rows, increasing, and their labels.

    Raises
    ------
    LabelError
        When the number of labels is not ``n_rows``, a row is out of range, or a row has two labels.
    """
    codes = _gather(path, LabelColumns(column), LabelCodes(n_rows, str(path), unlabelled))
    return codes.sparse() if sparse else codes.dense()


def read_weighted_labels(
    path: Any,
    n_rows: int | None = None,
    *,
    column: str | None = None,
    weight_column: str | None = None,
    unlabelled: int | str = -1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Read the labels of the labelled rows and their weights.

    Parameters
    ----------
    path, n_rows, column, unlabelled
        As in :func:`read_labels`.
    weight_column : str, optional
        Column that holds the weights; the third column of a table of ``row``, ``label`` and
        ``weight`` by default.

    Returns
    -------
    rows, values : ndarrays of shape (n_labelled,)
        Labelled rows and their labels. Without weights the rows increase; with weights a row may
        occur several times in a row.
    weights : ndarray of shape (n_labelled,) or None
        None where there is no column of weights.
    """
    columns = LabelColumns(column, weight_column)
    codes = _gather(path, columns, LabelCodes(n_rows, str(path), unlabelled))
    return codes.weighted() if codes.weights else (*codes.sparse(), None)


def _gather(path: Any, columns: LabelColumns, codes: LabelCodes) -> LabelCodes:
    """Append the labels in files of any format."""
    named = look_up(path)
    if named.listing is None:
        raise cannot_read_labels(named.files[0])
    if not named.is_table:
        for option, value in (("column", columns.label), ("weight_column", columns.weight)):
            if value is not None:
                raise ParameterError(
                    f"{option}={value!r} means nothing for {named.files[0]}, which is no table."
                )
    named.listing.load(named.files[0]).read_labels(codes, named.files, columns)
    return codes
