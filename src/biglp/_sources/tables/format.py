"""Formats of tables: what Parquet, Arrow and delimited text have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from biglp._core.errors import InputWarning, ParameterError, warn_caller
from biglp._rows.cache import CachedSource, CacheStore
from biglp._rows.encoding import Encoding, some
from biglp._rows.format import FileFacts, Format, LabelColumns, LabelPiece, Probe
from biglp._rows.options import ReadOptions
from biglp._rows.source import FileSource, explained_reading, no_rows, table_bytes
from biglp._sources.tables.columns import make_encoding
from biglp._sources.tables.convert import convert
from biglp._sources.tables.drift import compare_columns
from biglp._sources.tables.head import probe_table
from biglp._sources.tables.label_columns import labels_in_columns
from biglp._sources.tables.partitions import with_partitions
from biglp._sources.tables.table import MixedColumnError, TableFile, page_bytes_of, stream
from biglp._sources.tables.tabular import TabularSource

logger = logging.getLogger("biglp")


MOST_OPEN = 64
"""Files of a table that are kept open; a system allows a process about a thousand."""


class TableFormat(Format):
    """A format with named columns.

    Its methods are given the open files of a table (:meth:`InputFiles.tables`) where those of other
    formats are given names; only labels come from files that nothing else has opened.

    Attributes
    ----------
    table : type of TableFile
        Opens one file; called with its path, the options, and the first file of the same table.
    """

    table: Callable[..., TableFile]
    names_labels = True

    def open_files(self, files: Sequence[str], options: ReadOptions) -> list[TableFile]:
        """Open the files of one table."""
        tables: list[TableFile] = []
        for number, file in enumerate(files):
            with explained_reading(file):
                tables.append(self.table(file, options, *tables[:1]))
            if number >= MOST_OPEN:
                tables[-1].close()
        return tables

    def with_partitions(self, tables: Sequence[TableFile], options: ReadOptions) -> list[TableFile]:
        """Files of one table, with the columns that the names of their folders hold."""
        return with_partitions(tables, options)

    def open(self, tables: Sequence[TableFile], options: ReadOptions) -> FileSource:
        """Open a table, converting it first where that pays and the disk has room."""
        return open_tables(self.name, tables, options)

    def peek(self, tables: Sequence[TableFile], options: ReadOptions) -> FileFacts:
        """Say what files hold: their columns and number of rows."""
        if not any(table.n_rows_guess for table in tables):
            raise no_rows(tables[0].name)
        words = tables[0].words
        return FileFacts(
            kind=f"{self.name} ({words})" if words else self.name,
            files=tuple(table.name for table in tables),
            size=sum(table.stamp.size for table in tables if table.stamp is not None),
            n_rows=sum(table.n_rows_guess for table in tables),
            exact=bool(tables[0].part_rows),
            columns={field.name: str(field.type) for field in tables[0].schema},
            n_features=None,
            dtype=None,
            converted=tables[0].slow,
            page_bytes=page_bytes_of(tables),
        )

    def probe(self, tables: Sequence[TableFile], options: ReadOptions, wanted_rows: int) -> Probe:
        """Decode the first rows, to estimate how long decoding all of them takes."""
        return probe_table(tables, options)

    def count_rows(self, tables: Sequence[TableFile]) -> list[int]:
        """Count the rows of each file; text has to be read for that."""
        return [
            sum(table.part_rows)
            if table.part_rows
            else sum(batch.num_rows for batch in stream([table], table.schema.names[:1]))
            for table in tables
        ]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield a column of labels, of which only this column is read."""
        named = (columns.label, columns.weight, columns.id)
        asked = ReadOptions(drop=tuple(name for name in named if name is not None))
        return labels_in_columns(with_partitions(self.open_files(files, asked), asked), columns)


def open_tables(kind: str, tables: Sequence[TableFile], options: ReadOptions) -> FileSource:
    """Open the files of one table, converting them first where that pays and the disk has room.

    Parameters
    ----------
    kind : str
        Name of the format.
    tables : sequence of TableFile
    options : ReadOptions
    """
    stamps = tuple(table.stamp for table in tables if table.stamp is not None)
    name, in_parts = tables[0].name, bool(tables[0].part_rows)
    if len(tables) > 1:
        name += f" and {len(tables) - 1} more"
    n_rows = sum(table.n_rows_guess for table in tables)
    if n_rows == 0:
        raise no_rows(name)
    if in_parts and (options.cache == "never" or not tables[0].slow):
        encoding = make_encoding(tables, options)
        _tell(tables, options)
        return TabularSource(tables, encoding, name)
    if options.cache == "never":
        raise ParameterError(
            f"cache='never' cannot be used with {name}: {kind} cannot be read from the "
            "middle and must be converted once; use cache='auto' or name a folder."
        )
    store = CacheStore(name, stamps, options)
    found = store.find()
    tables, encoding, problem = (tables, found, None) if found else _convert(store, tables, options)
    _tell(tables, options)
    open_original = partial(TabularSource, tables, encoding, name) if in_parts else None
    if problem is not None and open_original is not None:
        logger.info("%s: not converted (%s); every sweep decodes it again", name, problem)
        return open_original()
    source = CachedSource(store, kind, stamps, encoding, open_original)
    if not source.is_sparse:
        pages = page_bytes_of(tables)
        source.decoding_bytes = table_bytes(source.n_rows, encoding.n_inputs, pages)
    if options.encoding is not None:  # new rows, compared with the training rows
        source.compare = partial(compare_columns, tables, encoding)
    return source


def _convert(
    store: CacheStore, tables: Sequence[TableFile], options: ReadOptions
) -> tuple[Sequence[TableFile], Encoding, str | None]:
    """Convert a table; a column in which a text turns up is read as text from its first row.

    Whether the text is found at the beginning of a file or later must make no difference. The
    table is returned as it was read.
    """
    while True:
        try:
            encoding = make_encoding(tables, options)
            return tables, encoding, convert(store, tables, encoding, options.progress)
        except MixedColumnError as error:
            if options.categorical != "auto" or options.encoding is not None:
                raise
            tables = [table.as_written(error.column) for table in tables]


def _tell(tables: Sequence[TableFile], options: ReadOptions) -> None:
    """Warn of what may not have been meant: guesses, and columns that the first file has not."""
    for table in tables:
        for remark in table.remarks:
            warn_caller(remark, InputWarning)
    if options.columns is not None or options.encoding is not None:
        return  # others are left out on purpose
    known = {*tables[0].schema.names, *options.drop}
    more = [(table, [n for n in table.schema.names if n not in known]) for table in tables]
    more = [(table, columns) for table, columns in more if columns]
    if more:
        table, columns = more[0]
        others = f", and {len(more) - 1} more files have such columns" if len(more) > 1 else ""
        warn_caller(
            f"{table.name} has {some(columns)}, which {tables[0].name} has not{others}; columns "
            "that the first file has not are left out.",
            InputWarning,
        )
