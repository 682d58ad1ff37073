"""What an input is, found without reading or converting its rows."""

from __future__ import annotations

from dataclasses import dataclass


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
