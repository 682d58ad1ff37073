"""Labels from files: a column of the table, one label a row, ``row,label`` or ``id,label``.

A table may have a column of weights as well, as in ``row,label,weight``. A row may occur several
times, which makes a label distribution.

Only the labels are read, a piece at a time, and what is kept is a small code for each row. A row is
unlabelled where its label is -1, empty, null or NaN.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from biglp._core.errors import ParameterError
from biglp._files.uri import INSIDE, split_inside
from biglp._rows.format import LabelColumns
from biglp._rows.opening import InputFiles
from biglp._rows.source import explained_reading
from biglp._sources.labels.codes import LabelCodes, Marks


@overload
def read_labels(
    path: Any,
    n_rows: int | None = ...,
    *,
    column: str | None = ...,
    unlabelled: Marks = ...,
    sparse: Literal[False] = ...,
) -> np.ndarray: ...


@overload
def read_labels(
    path: Any,
    n_rows: int | None = ...,
    *,
    column: str | None = ...,
    unlabelled: Marks = ...,
    sparse: Literal[True],
) -> tuple[np.ndarray, np.ndarray]: ...


def read_labels(
    path: Any,
    n_rows: int | None = None,
    *,
    column: str | None = None,
    unlabelled: Marks = None,
    sparse: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Read labels.

    Parameters
    ----------
    path : path
        ``.npy`` of one label a row; ``.txt`` of one a line; a table (CSV, Parquet, Arrow) with one
        column of labels or with columns ``row`` and ``label``; the table of the features itself,
        with ``column``; a LIBSVM file, whose lines begin with the label; an array of a ``.npz`` or
        HDF5 file or a Zarr folder, as ``file.h5::name``; or ``sim:…``.
    n_rows : int, optional
        Rows that there must be labels for; needed for ``row,label`` pairs.
    column : str, optional
        Column or array that holds the labels.
    unlabelled : int, str, sequence of these or None
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
    columns = LabelColumns(column, by_line=column is not None)
    codes = gather_labels(path, n_rows, columns, unlabelled)
    if not sparse:
        return codes.dense()
    rows, found, _ = codes.labelled()
    return rows, codes.classes()[found]


def gather_labels(
    path: Any,
    n_rows: int | None = None,
    columns: LabelColumns | None = None,
    unlabelled: Marks = None,
) -> LabelCodes:
    """Read the labels in a file of any format, with weights where there are any.

    Parameters
    ----------
    path, n_rows, unlabelled
        As in :func:`read_labels`; the files may have been looked up already.
    columns : LabelColumns, optional
        Columns of labels, weights and IDs. By default the weights are the third column of a table
        of ``row``, ``label`` and ``weight``.
    """
    columns = columns or LabelColumns()
    named = path
    if not isinstance(path, InputFiles):
        named = InputFiles(path, for_labels=not columns.by_line)
    codes = LabelCodes(n_rows, str(named.paths), unlabelled)
    _ = named.stamps  # taken before anything is read, and checked after it
    files = named.files
    if columns.label is not None and named.format.holds_arrays:
        files = tuple(f"{split_inside(file)[0]}{INSIDE}{columns.label}" for file in files)
        columns = columns._replace(label=None)
    label = None if named.format.names_labels else columns.label
    weight = None if named.is_table else columns.weight
    for option, value in (("column", label), ("weight_column", weight)):
        if value is not None and columns.must:
            raise ParameterError(
                f"{option}={value!r} means nothing for {named.files[0]}, which is no table."
            )
    with explained_reading(files[0]):
        codes.gather(named.format.read_labels(files, columns, n_rows))
    named.check_unchanged()
    if named.format.has_minus_one:
        codes.refuse_plus_minus_one()
    return codes
