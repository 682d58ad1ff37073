"""A table beside the rows: a line for each row, in as many files as there are shards or in others.

Embeddings often come as shards of numbers, with labels and IDs in a table of metadata beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows.opening import InputFiles


def check_table_beside(rows: InputFiles, table: InputFiles) -> None:
    """Check that the table beside rows has a line for each of them.

    Parameters
    ----------
    rows : InputFiles
        The rows. Where there are as many files of them as of the table, each is compared with its
        own; else all rows with all lines.
    table : InputFiles

    Raises
    ------
    ParameterError
        When it is no table.
    BadRowsError
        When the numbers of rows differ.
    """
    if not table.is_table:
        raise ParameterError(
            f"metadata={table.paths!r} (--metadata) must be a table, such as Parquet or CSV, and "
            f"{table.files[0]} is not; labels in an array are given with labels= (--labels)."
        )
    lines = table.count_rows()
    if not rows.in_files:
        return
    counts = rows.count_rows()
    if len(lines) == len(counts) > 1:
        _compare_each(rows.files, counts, table.files, lines)
    elif sum(lines) != sum(counts):
        raise BadRowsError(
            f"the table beside the rows ({_called(table.files)}) has {sum(lines):,} rows, and "
            f"{_called(rows.files)} has {sum(counts):,}; it must have one for each, in the same "
            "order. Check metadata= (--metadata)."
        )


def _compare_each(
    files: Sequence[str], counts: Sequence[int], tables: Sequence[str], lines: Sequence[int]
) -> None:
    wrong = [
        f"{file} has {count:,} and {table} {length:,}"
        for file, count, table, length in zip(files, counts, tables, lines, strict=True)
        if count != length
    ]
    if wrong:
        more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
        raise BadRowsError(
            f"{len(wrong):,} of {len(files):,} shards have another number of rows than the table "
            f"beside them: {'; '.join(wrong[:3])}{more}. Files are compared in order of their "
            "names; check metadata= (--metadata), or write the shards again."
        )


def _called(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"
