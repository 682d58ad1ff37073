"""Labels from files: a column of the table, one label a row, or ``row,label`` pairs.

A table may have a column of weights as well, as in ``row,label,weight``; a row may then occur
several times, which makes a label distribution.

Only the labels are read, a piece at a time, and what is kept is a small code for each row. A row is
unlabelled where its label is -1, empty, null or NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from biglp._core.errors import LabelError, ParameterError
from biglp._core.files import FileStamp
from biglp._sources.cache.rawfile import RawFile
from biglp._sources.formats.libsvm import label_chunks
from biglp._sources.formats.simulated import SimulatedSource
from biglp._sources.formats.simulation import PREFIX, Simulation
from biglp._sources.formats.textfiles import open_text
from biglp._sources.labels.codes import LabelCodes
from biglp._sources.naming import DELIMITED, LIBSVM, TABLES, ending, find_files
from biglp._sources.opening import open_tables
from biglp._sources.options import ReadOptions
from biglp._sources.tables.encoding import some

if TYPE_CHECKING:
    from biglp._sources.tables.table import TableFile

PIECE_ROWS = 1 << 20
ROW_NAMES = ("row", "rows", "index", "row_index")
LABEL_NAMES = ("label", "labels", "y", "class", "target")
WEIGHT_NAMES = ("weight", "weights", "confidence", "sample_weight")


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
    codes = _gather(path, n_rows, column, None, unlabelled)
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
    codes = _gather(path, n_rows, column, weight_column, unlabelled)
    return codes.weighted() if codes.has_weights else (*codes.sparse(), None)


def _gather(
    path: Any,
    n_rows: int | None,
    column: str | None,
    weight_column: str | None,
    unlabelled: int | str,
) -> LabelCodes:
    codes = LabelCodes(n_rows, str(path), unlabelled)
    if isinstance(path, str) and path.startswith(PREFIX):
        _simulated(codes, Simulation.parse(path))
    else:
        _from_files(codes, path, column, weight_column)
    return codes


def _from_files(
    codes: LabelCodes, path: Any, column: str | None, weight_column: str | None
) -> None:
    files = find_files(path)
    kind = ending(files[0])
    if kind in TABLES:
        tables = open_tables(files, ReadOptions())
        if column is None and kind in DELIMITED and len(tables[0].schema.names) == 1:
            _lines(codes, files[0])
            return
        _table(codes, tables, column, weight_column)
        return
    for name, value in (("column", column), ("weight_column", weight_column)):
        if value is not None:
            raise ParameterError(
                f"{name}={value!r} means nothing for {files[0]}, which is no table."
            )
    if kind == ".npy":
        _array(codes, files[0])
    elif kind == ".txt":
        _lines(codes, files[0])
    elif kind in LIBSVM:
        _libsvm(codes, files[0])
    else:
        raise LabelError(
            f"{files[0]}: labels cannot be read from files ending in {kind!r}; use .npy, .txt, "
            f"{', '.join((*TABLES, *LIBSVM))}."
        )


def _array(codes: LabelCodes, path: str) -> None:
    file = RawFile(path)
    if len(file.shape) != 1:
        raise LabelError(f"{path} has shape {file.shape}; labels need one dimension, one a row.")
    if file.dtype.kind not in "iufbUS":
        raise LabelError(f"{path} holds {file.dtype}; labels must be integers or text.")
    codes.expect(file.shape[0])
    for start in range(0, file.shape[0], PIECE_ROWS):
        piece = file.read(start, min(start + PIECE_ROWS, file.shape[0]))
        codes.append(piece.astype("U") if piece.dtype.kind == "S" else piece)


def _lines(codes: LabelCodes, path: str) -> None:
    """One label a line; one line more than there are rows means that the first is a name."""
    stamp = FileStamp.of(path)
    n_lines = _count_lines(path)
    skip = codes.n_rows is not None and n_lines == codes.n_rows + 1
    if codes.n_rows is None:
        with open_text(path) as file:
            skip = file.readline().decode("utf-8-sig", "replace").strip() in LABEL_NAMES
    codes.expect(n_lines - skip)
    for piece in _line_pieces(path):
        codes.append(piece[1:] if skip else piece, text=True)
        skip = False
    stamp.check()


def _line_pieces(path: str) -> Iterator[list[str]]:
    with open_text(path) as file:
        while lines := file.readlines(8 << 20):
            texts = [line.decode("utf-8-sig", errors="replace").strip() for line in lines]
            yield [text[1:-1] if text[:1] == text[-1:] == '"' else text for text in texts]


def _count_lines(path: str) -> int:
    count, last = 0, b"\n"
    with open_text(path) as file:
        while piece := file.read(1 << 22):
            count += piece.count(b"\n")
            last = piece[-1:]
    return count + (last != b"\n")


def _libsvm(codes: LabelCodes, path: str) -> None:
    for labels in label_chunks(path):
        codes.append(labels, text=True)
    codes.refuse_plus_minus_one()


def _simulated(codes: LabelCodes, simulation: Simulation) -> None:
    source = SimulatedSource(simulation)
    codes.expect(source.n_rows)
    for start in range(0, source.n_rows, PIECE_ROWS):
        codes.append(source.labels(start, min(start + PIECE_ROWS, source.n_rows)))


def _table(
    codes: LabelCodes, tables: list[TableFile], column: str | None, weight_column: str | None
) -> None:
    from biglp._sources.tables.table import stream

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
    text = ending(tables[0].name) in DELIMITED
    if text:  # classes are read as they are written, whatever they look like
        tables = [_as_text(table, column) for table in tables]
    wanted = [name for name in (row_column, column, weight_column) if name is not None]
    for batch in stream(tables, wanted):
        weights = None if weight_column is None else _numbers(batch, weight_column, tables[0].name)
        if row_column is None:
            codes.append(batch.column(column), text=text, weights=weights)
            continue
        rows = batch.column(row_column)
        if rows.null_count:
            raise LabelError(f"{tables[0].name}: column {row_column!r} has empty entries.")
        numbers = _whole(rows, tables[0].name)
        codes.put(numbers, batch.column(column), text=text, weights=weights)


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


def _as_text(table: TableFile, column: str) -> TableFile:
    import pyarrow as pa

    place = table.schema.get_field_index(column)
    table.schema = table.schema.set(place, pa.field(column, pa.string()))
    return table


def _whole(column: Any, name: str) -> np.ndarray:
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "iuf" or (values != np.floor(values)).any():
        raise LabelError(f"{name}: row numbers must be whole numbers, counted from 0.")
    return values.astype(np.int64)
