"""What an input is, found without reading or converting its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biglp._sources.damaged import explained_reading
from biglp._sources.naming import look_up
from biglp._sources.options import ReadOptions


@dataclass(frozen=True)
class FileFacts:
    """What can be said about an input at once.

    Attributes
    ----------
    kind : str
        Format.
    files : tuple of str
        Files, in order; empty for a simulation.
    size : int
        Their bytes.
    n_rows : int
        Number of rows; an estimate when ``exact`` is false.
    exact : bool
    columns : dict of str to str
        Names and types of a table's columns; empty for other formats.
    n_features : int or None
        Number of features of formats without named columns, where the file says it.
    dtype : str or None
        Type of the numbers of formats without named columns.
    converted : bool
        Whether the rows will be converted once before the first sweep.
    page_bytes : int
        Memory that decoding holds of each column of a table, because its format packs so much.
    """

    kind: str
    files: tuple[str, ...]
    size: int
    n_rows: int
    exact: bool
    columns: dict[str, str]
    n_features: int | None
    dtype: str | None
    converted: bool
    page_bytes: int = 0


def peek(paths: Any, **options: Any) -> FileFacts:
    """Look at a file, several files, a folder, a pattern or a simulation.

    Parameters
    ----------
    paths : path or sequence of paths
    **options
        ``delimiter`` and ``header`` of :class:`biglp._sources.ReadOptions`.
    """
    named = look_up(paths)
    with explained_reading(named.files[0]):
        return named.format.peek(named.files, ReadOptions(**options))
