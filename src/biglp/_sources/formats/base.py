"""What a format of rows can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from biglp._core.files import FileStamp
from biglp._sources.array_names import split_inside
from biglp._sources.base import Source
from biglp._sources.naming import cannot_open, cannot_read_labels
from biglp._sources.options import ReadOptions
from biglp._sources.peek import FileFacts
from biglp._sources.probe import Probe, probe_rows

if TYPE_CHECKING:
    from biglp._sources.labels.codes import LabelCodes


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
    file.

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
    """

    name: str
    holds_labels: bool = False
    holds_arrays: bool = False
    in_files: bool = True
    names_labels: bool = False

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        """Open files as one source of rows."""
        raise cannot_open(files)

    def peek(self, files: Sequence[str], options: ReadOptions) -> FileFacts:
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

    def probe(self, files: Sequence[str], options: ReadOptions, wanted_rows: int) -> Probe:
        """Read some rows, to estimate how long reading all of them takes."""
        # Without options: missing="mean" would read all rows to find the means.
        return probe_rows(self.open(files, ReadOptions()), wanted_rows)

    def count_rows(self, files: Sequence[str]) -> list[int]:
        """Count the rows of each file."""
        return [self.peek([file], ReadOptions()).n_rows for file in files]

    def read_labels(self, codes: LabelCodes, files: Sequence[str], columns: LabelColumns) -> None:
        """Append the labels in files to ``codes``."""
        raise cannot_read_labels(files)
