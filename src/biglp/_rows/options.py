"""How a file of rows is to be read."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.parameters import PARAMETERS, true_or_false
from biglp._core.progress import Progress
from biglp._rows.source import Encoding

PACKED = (".gz", ".bz2")
"""Endings of text that is packed."""
LAYOUT = ("delimiter", "decimal", "text_encoding")
"""Options that say how a text file is laid out, whatever is made of its columns."""


@dataclass(frozen=True)
class ReadOptions:
    """Options of :func:`biglp._rows.as_source`."""

    columns: tuple[str, ...] | None = None
    """Features of a table, in this order; by default all but ``label_column`` and ``drop``."""
    label_column: str | None = None
    """Column that holds labels and is no feature."""
    drop: tuple[str, ...] = ()
    categorical: Literal["auto", "onehot", "error"] = "auto"
    """"auto" makes a feature of each of a few categories, takes of many the most frequent and how
    frequent each is, reads dates, and leaves out columns that say nothing of a row: names and
    numbers of the rows, columns of one value, free text. "onehot" makes a feature of each category,
    "error" refuses text."""
    missing: Literal["auto", "mean", "error"] = "auto"
    """"auto" fills numbers with the median and marks them by a second feature, and makes a category
    of missing ones; "mean" fills in the mean and nothing else; "error" refuses them. Without named
    columns "auto" refuses them too."""
    text: tuple[str, ...] = ()
    """Columns of sentences, whose words are counted: sparse rows, words after other features."""
    text_model: str = "auto"
    """What says what texts mean: a folder, "auto" for the one of the extra text where that is
    installed, "none" for words alone."""
    dtype: str | None = None
    """By default the narrowest type that holds all columns of a Parquet or Arrow table, and float64
    for text formats."""
    strict: bool = False
    """Refuse a table of which anything would be filled in, or left out without being named."""
    encoding: Encoding | None = None
    """Columns become what an earlier file's did; they are matched by name."""
    cache: str | os.PathLike[str] = "auto"
    """Where slow formats are converted to raw rows: a temporary folder, nowhere ("never"), or a
    folder that is used again while the input does not change."""
    # What follows is found by looking at the file by default.
    delimiter: str | None = None
    decimal: str | None = None
    text_encoding: str | None = None
    """As Python calls it ("latin-1", "utf-16")."""
    header: bool | None = None
    """Whether a CSV file begins with column names."""
    zero_based: bool | None = None
    """Whether a LIBSVM file counts features from 0."""
    n_features: int | None = None
    """Of a LIBSVM file; the largest that occurs by default."""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Check the values and bring sequences into one form."""
        for name, value in (("columns", self.columns), ("drop", self.drop), ("text", self.text)):
            if isinstance(value, str):
                raise ParameterError(f"{name}={value!r} must be a list of column names, not text.")
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        true_or_false("strict", self.strict)
        try:
            dtype = None if self.dtype is None else np.dtype(self.dtype).name
        except TypeError:  # no type at all
            dtype = str(self.dtype)
        for option, given in (
            ("categorical", self.categorical),
            ("missing", self.missing),
            ("dtype", dtype or "float64"),
            ("decimal", self.decimal or "."),
        ):
            allowed = PARAMETERS[option].words
            if given not in allowed:
                choices = ", ".join(map(repr, allowed))
                raise ParameterError(f"{option}={given!r} is not known; use one of {choices}.")
        stored: Any = self.encoding
        if isinstance(stored, dict):
            object.__setattr__(self, "encoding", Encoding.from_json(stored))
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ParameterError(f"delimiter={self.delimiter!r} must be a single character.")
        if self.delimiter is not None and self.delimiter == self.decimal:
            raise ParameterError(
                f"decimal={self.decimal!r} is the delimiter too; a number could not be told from "
                "two fields."
            )
        if self.text_encoding is not None:
            try:
                codecs.lookup(self.text_encoding)
            except LookupError:
                raise ParameterError(
                    f"text_encoding={self.text_encoding!r} is no encoding that Python knows; use "
                    "utf-8, cp1252 (Windows), latin-1, utf-16 or another."
                ) from None

    def refuse(self, name: str, *unused: str) -> None:
        """Raise when an option was given that means nothing for ``name``."""
        given, default = vars(self), vars(ReadOptions())
        for option in unused:
            if given[option] != default[option]:
                instead = "leave it out"
                if option == "label_column":
                    instead += ", or name a table beside the rows with metadata= (--metadata)"
                raise ParameterError(
                    f"{option}={given[option]!r} means nothing for {name}, "
                    f"which is not a table with named columns; {instead}."
                )
