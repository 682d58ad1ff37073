"""What a format of rows can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from biglp._core.errors import BadRowsError, LabelError
from biglp._files.local import FileStamp
from biglp._files.uri import as_place, split_inside
from biglp._sources.base import Source
from biglp._sources.formats import Holds, endings_of
from biglp._sources.formats.textfiles import PACKED
from biglp._sources.options import ReadOptions
from biglp._sources.peek import FileFacts
from biglp._sources.probe import Probe, probe_rows

LABEL_NAMES = ("label", "labels", "y", "class", "target")
"""Names of a column that holds labels."""
PIECE_ROWS = 1 << 20
"""Labels that are read at once."""


class LabelPiece(NamedTuple):
    """Some of the labels in files, as a format reads them.

    Attributes
    ----------
    labels : array or list of str
        A NumPy or Arrow array, or a list of texts.
    rows : ndarray, optional
        Their rows, in any order; the next rows by default. A row may have several.
    ids : Arrow array, optional
        The IDs of their rows, instead.
    text : bool
        Whether the labels are as they were written in a text file.
    weights : ndarray, optional
    total : int, optional
        Labels of all pieces, one a row, where that is known before they are read.
    skipped : int
        Entries of a labelling tool that nobody has answered.
    """

    labels: Any
    rows: np.ndarray | None = None
    ids: Any = None
    text: bool = False
    weights: np.ndarray | None = None
    total: int | None = None
    skipped: int = 0


class LabelArray(NamedTuple):
    """One label a row.

    Attributes
    ----------
    name : str
        What messages call it.
    shape : tuple of int
    dtype : numpy.dtype
    read : callable
        Returns the labels from row to row.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[int, int], np.ndarray]


def labels_in_arrays(arrays: Sequence[LabelArray]) -> Iterator[LabelPiece]:
    """Yield the labels of arrays, one after the other, a piece at a time."""
    for array in arrays:
        if len(array.shape) != 1:
            raise LabelError(
                f"{array.name} has shape {array.shape}; labels need one dimension, one a row."
            )
        if array.dtype.kind not in "iufbUSOT":
            raise LabelError(f"{array.name} holds {array.dtype}; labels must be integers or text.")
    total = sum(array.shape[0] for array in arrays)
    yield LabelPiece([], total=total)  # a wrong number is told before anything is read
    for array in arrays:
        for start in range(0, array.shape[0], PIECE_ROWS):
            piece = array.read(start, min(start + PIECE_ROWS, array.shape[0]))
            yield LabelPiece(_texts(piece) if array.dtype.kind in "OT" else piece)


def _texts(piece: np.ndarray) -> list[str]:
    """Texts of any length, as HDF5 and Zarr store them."""
    return [
        value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
        for value in piece.tolist()
    ]


class LabelColumns(NamedTuple):
    """Columns of a table that hold labels, their weights and IDs, where the user names them.

    Attributes
    ----------
    label, weight : str or None
        Found by name or place where None.
    id : str or None
        Column of the IDs in the table of the rows; the labels' table may call it "id".
    must : bool
        Whether the table has to have the first two, because nothing else does.
    by_line : bool
        Whether each line is a row, because the table is that of the rows.
    """

    label: str | None = None
    weight: str | None = None
    id: str | None = None
    must: bool = True
    by_line: bool = False


class Format:
    """One format of rows, of labels, or of both.

    A format of rows must define :meth:`open`. The other methods are right for rows that can be read
    from anywhere in the file; a format whose rows are converted first has to define :meth:`peek`
    and :meth:`probe`, which may not convert. ``files`` are names of files, of which a format of
    rows that is not registered as shards is given one, or the description of rows that are in no
    file; a format of tables is given files that are open (:class:`TableFormat`).

    Attributes
    ----------
    name : str
        What messages call the format.
    holds_labels : bool
        Whether a file of rows holds their labels too, in a place that need not be named.
    holds_arrays : bool
        Whether a file holds arrays with names: the rows are one, the labels may be another.
    in_files : bool
        Whether the rows are in files, and not made from a description.
    names_labels : bool
        Whether labels in a file have a name, as columns of a table do, so that one can be chosen.
    has_minus_one : bool
        Whether its labels are often 1 and -1, which is a class then and does not mean unlabelled.
    """

    name: str
    holds_labels: bool = False
    holds_arrays: bool = False
    in_files: bool = True
    names_labels: bool = False
    has_minus_one: bool = False

    def open(self, files: Sequence[Any], options: ReadOptions) -> Source:
        """Open files as one source of rows."""
        raise BadRowsError(
            f"{files[0]}: files ending in {ending(files[0])!r} cannot be read"
            f"{' several at a time' if len(files) > 1 else ''}; use {_rows_endings()}; or "
            f"{', '.join(endings_of('table'))} (text may be packed as .gz or .bz2)."
        )

    def peek(self, files: Sequence[Any], options: ReadOptions) -> FileFacts:
        """Say what files hold, without reading or converting their rows."""
        source = self.open(files, options)
        stamps = [FileStamp.of(split_inside(file)[0]) for file in files] if self.in_files else []
        return FileFacts(
            kind=self.name,
            files=tuple(stamp.path for stamp in stamps),
            size=sum(stamp.size for stamp in stamps),
            n_rows=source.n_rows,
            exact=True,
            columns={},
            n_features=source.n_features,
            dtype=source.dtype.name,
            converted=False,
        )

    def probe(self, files: Sequence[Any], options: ReadOptions, wanted_rows: int) -> Probe:
        """Read some rows, to estimate how long reading all of them takes."""
        # Without options: missing="mean" would read all rows to find the means.
        return probe_rows(self.open(files, ReadOptions()), wanted_rows)

    def count_rows(self, files: Sequence[Any]) -> list[int]:
        """Count the rows of each file."""
        return [self.peek([file], ReadOptions()).n_rows for file in files]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels in files; ``n_rows`` says how many rows there are, where it is known."""
        raise LabelError(
            f"{files[0]}: labels cannot be read from files ending in {ending(files[0])!r}"
            f"{' several at a time' if len(files) > 1 else ''}; use {_rows_endings('labels')}; or "
            f"{', '.join(endings_of('table'))}."
        )


def ending(path: str) -> str:
    """Ending of a file's name, below the packing: ``.csv`` for ``x.csv.gz``."""
    name = PurePosixPath(as_place(split_inside(path)[0]).name)
    return (PurePosixPath(name.stem) if name.suffix.lower() in PACKED else name).suffix.lower()


def _rows_endings(*more: Holds) -> str:
    several, single = ", ".join(endings_of("shards")), ", ".join(endings_of("rows", *more))
    return f"{several} (one file or several), {single} (one file)"
