"""From what a user names to the source that reads it.

Table formats are loaded when they are first used, so that arrays, ``.npy`` files and simulations
work where pyarrow is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from biglp._core.errors import BadRowsError, MissingExtraError
from biglp._core.files import FileStamp
from biglp._sources.base import Source
from biglp._sources.filled import fill_missing
from biglp._sources.formats.libsvm import open_libsvm
from biglp._sources.formats.npy import NpySource
from biglp._sources.formats.simulated import SimulatedSource
from biglp._sources.formats.simulation import PREFIX, Simulation
from biglp._sources.naming import ARROW, DELIMITED, LIBSVM, PARQUET, TABLES, ending, find_files
from biglp._sources.options import ReadOptions

if TYPE_CHECKING:
    from biglp._sources.tables.table import TableFile


def open_source(paths: Any, **options: Any) -> Source:
    """Open a file, several files, a folder, a pattern or a simulation.

    Parameters
    ----------
    paths : path or sequence of paths
    **options
        See :class:`biglp._sources.ReadOptions`.
    """
    chosen = ReadOptions(**options)
    if isinstance(paths, str) and paths.startswith(PREFIX):
        chosen.refuse(paths, "columns", "label_column", "drop", "categorical", "missing", "dtype")
        return SimulatedSource(Simulation.parse(paths))
    files = find_files(paths)
    endings = {ending(file) for file in files}
    if len(files) == 1 and endings == {".npy"}:
        chosen.refuse(files[0], "columns", "label_column", "drop", "categorical", "dtype")
        return fill_missing(NpySource(files[0]), chosen)
    if len(files) == 1 and endings <= set(LIBSVM):
        return open_libsvm(files[0], chosen)
    tables = open_tables(files, chosen)
    from biglp._sources.cache.convert import open_table

    return open_table(tables, chosen)


def open_tables(files: Sequence[str], options: ReadOptions) -> list[TableFile]:
    """Open the files of one table; they must have one format."""
    with _needing_pyarrow(files[0]):
        from biglp._sources.formats.arrow import ArrowTable
        from biglp._sources.formats.delimited import DelimitedTable
        from biglp._sources.formats.parquet import ParquetTable
    endings = {ending(file) for file in files}
    if endings <= set(PARQUET):
        return [ParquetTable(file) for file in files]
    if endings <= set(ARROW):
        return [ArrowTable(file) for file in files]
    if endings <= set(DELIMITED):
        first = DelimitedTable(files[0], options)
        return [first, *(DelimitedTable(file, options, like=first) for file in files[1:])]
    if len(endings) > 1:
        raise BadRowsError(
            f"{files[0]} and the {len(files) - 1} files with it have different endings "
            f"({', '.join(sorted(endings))}); the files of one table must have one format."
        )
    FileStamp.of(files[0])  # a file that is not there is the likelier mistake
    raise BadRowsError(
        f"{files[0]}: files ending in {ending(files[0])!r} cannot be read"
        f"{' in numbers' if len(files) > 1 else ''}; use .npy (one file), "
        f"{', '.join((*TABLES, *LIBSVM))} (text may be packed as .gz or .bz2)."
    )


def open_frame(frame: Any, options: ReadOptions) -> Source | None:
    """Open a data frame as a table; None for one of plain numbers, which is as good an array."""
    no_options = ReadOptions(cache=options.cache, progress=options.progress) == options
    if no_options and _is_plain_pandas(frame):
        return None
    with _needing_pyarrow("this data frame"):
        from biglp._sources.formats.arrow import FrameTable, is_frame, plain_numbers
        from biglp._sources.tables.columns import make_encoding
        from biglp._sources.tables.tabular import TabularSource
    if not is_frame(frame) or (no_options and plain_numbers(frame)):
        return None
    table = FrameTable(frame)
    options.refuse("a data frame", "delimiter", "header", "zero_based", "n_features")
    return TabularSource([table], make_encoding([table], options))


def _is_plain_pandas(frame: Any) -> bool:
    dtypes = list(getattr(frame, "dtypes", [object()]))
    return all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes)


@contextmanager
def _needing_pyarrow(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{name} is read through pyarrow, which cannot be loaded here ({error}); install it "
            "with: pip install pyarrow. Arrays and .npy files do not need it."
        ) from error
