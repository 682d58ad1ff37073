"""One file for each format of rows, and one line here.

To add a format, write a file with a :class:`~biglp._sources.formats.base.Format` and register it
below: its name, where it is, what it holds, and the endings of its files. Names and endings are
known at once; a format's module, and whatever it imports, is loaded when a file of it is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from biglp._core.errors import MissingExtraError
from biglp._core.registry import Registry

if TYPE_CHECKING:
    from biglp._sources.formats.base import Format

Holds = Literal["rows", "shards", "table", "labels"]
"""Rows without names, in one file; the same in one file or several; a table with named columns, in
one file or several; or labels only."""


@dataclass(frozen=True)
class Listing:
    """What is known of a format before it is loaded.

    Attributes
    ----------
    name : str
    holds : {"rows", "shards", "table", "labels"}
    endings : tuple of str
        Endings of its files.
    prefix : str
        How its descriptions begin, for rows that are in no file; else empty.
    folder : bool
        Whether what has this ending is a folder.
    """

    name: str
    holds: Holds
    endings: tuple[str, ...] = ()
    prefix: str = ""
    folder: bool = False


LISTINGS: dict[str, Listing] = {}
FORMATS: Registry[Format] = Registry({})


def register(name: str, format_or_place: Format | str, holds: Holds, *marks: str) -> None:
    """Make a format known.

    Parameters
    ----------
    name : str
    format_or_place : Format or str
        The format, or ``"module:object"``.
    holds : {"rows", "shards", "table", "labels"}
    *marks : str
        Endings of its files (``.npy``) or folders (``.zarr/``), or what its descriptions begin with
        (``sim:``).
    """
    endings = tuple(mark.rstrip("/") for mark in marks if mark.startswith("."))
    prefix = next((mark for mark in marks if mark.endswith(":")), "")
    thing: Any = format_or_place
    FORMATS[name] = thing
    LISTINGS[name] = Listing(name, holds, endings, prefix, any(m.endswith("/") for m in marks))


def unregister(name: str) -> None:
    """Forget a format."""
    del LISTINGS[name], FORMATS[name]


def endings_of(*holds: Holds) -> tuple[str, ...]:
    """Endings of all formats that hold one of these."""
    return tuple(
        ending
        for listing in LISTINGS.values()
        if listing.holds in holds
        for ending in listing.endings
    )


def without_pyarrow(name: str, error: ImportError) -> MissingExtraError:
    """Explain that something cannot be read here."""
    return MissingExtraError(
        f"{name} is read through pyarrow, which cannot be loaded here ({error}); install it "
        "with: pip install pyarrow. Arrays and .npy files do not need it."
    )


register("npy", "biglp._sources.formats.npy:NPY", "shards", ".npy")
register("Parquet", "biglp._sources.formats.parquet:PARQUET", "table", ".parquet", ".pq", ".parq")
register("Arrow", "biglp._sources.formats.arrow:ARROW", "table", ".arrow", ".feather", ".ipc")
register("CSV", "biglp._sources.formats.delimited:DELIMITED", "table", ".csv", ".tsv", ".tab")
register(
    "LIBSVM",
    "biglp._sources.formats.libsvm:LIBSVM",
    "rows",
    ".libsvm",
    ".svm",
    ".svmlight",
    ".svml",
)
register("npz", "biglp._sources.formats.npz:NPZ", "shards", ".npz")
register("JSONL", "biglp._sources.formats.jsonlines:JSON_LINES", "table", ".jsonl", ".ndjson")
register("HDF5", "biglp._sources.formats.hdf5:HDF5", "shards", ".h5", ".hdf5", ".he5", ".hdf")
register("Zarr", "biglp._sources.formats.zarr_folders:ZARR", "shards", ".zarr/")
register("simulated", "biglp._sources.formats.simulated:SIMULATED", "rows", "sim:")
register("lines", "biglp._sources.formats.lines:LINES", "labels", ".txt")
register("JSON", "biglp._sources.formats.exports:EXPORTS", "labels", ".json", ".jsonl", ".ndjson")
