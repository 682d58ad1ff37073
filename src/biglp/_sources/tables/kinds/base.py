"""What every kind of column offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from biglp._core.arrays import Rows


class WrongRowsError(ValueError):
    """Values that cannot be features, and where they are.

    Parameters
    ----------
    problem : str
        What is wrong with the column, as in "has lists of 3 numbers".
    where : ndarray of bool of shape (rows,)
        True for the rows that it is wrong in.
    """

    def __init__(self, problem: str, where: np.ndarray) -> None:
        super().__init__(problem)
        self.where = where


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table, and how it becomes a block of features.

    A subclass is a frozen dataclass whose fields are numbers, texts and tuples of these: that is
    what model files and other processes get.

    Attributes
    ----------
    kind : str
        Name in :data:`~biglp._sources.tables.kinds.KINDS` and in model files.
    expects : str
        What the column must hold, for messages.
    sparse : bool
        Whether most features of a row are 0, so that rows are CSR matrices; see
        :class:`~biglp._sources.tables.kinds.words.Words`. Such columns come after all others.
    name : str
        The column's name in the table.
    width : int
        Number of features.
    feature_names : tuple of str
        Names of the features.
    """

    kind: ClassVar[str]
    expects: ClassVar[str] = "numbers"
    sparse: ClassVar[bool] = False
    name: str

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def plain(self) -> bool:
        """Whether its features are the numbers of the column, so that an array will do instead."""
        return False

    @property
    def fillings(self) -> tuple[float | None, ...]:
        """What a missing value of each feature of a plain column becomes; None: it is refused."""
        return (None,) * self.width

    def describe(self) -> str:
        """Say in a few words what is done with the column."""
        return self.kind

    def takes(self, kind: Any) -> bool:
        """Whether a column of this Arrow type can be treated so."""
        return True

    def read_as(self, found: Any) -> Any:
        """Arrow type that a file without declared types is to read the column as.

        Parameters
        ----------
        found : pyarrow.DataType
            What the first rows look like: float64, truth values, moments or text.
        """
        return found

    @abstractmethod
    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Turn values into features.

        Parameters
        ----------
        values : pyarrow.Array or pyarrow.ChunkedArray
            Values of the column in some rows.
        out : ndarray of shape (width, rows)
            Where the features go; whatever was there is overwritten.

        Returns
        -------
        missing : ndarray of bool of shape (rows,), or None
            Rows whose value is missing and may not be; None when there are none.

        Raises
        ------
        WrongRowsError
            When values of some rows cannot be features, and are not merely missing.
        TypeError, ValueError, pyarrow.ArrowException
            When the values are of another kind.
        """

    def sparse_rows(self, values: Any) -> Rows:
        """Features of a sparse column, as a CSR matrix.  (rows, width)."""
        raise TypeError(f"a column of kind {self.kind!r} is dense")

    def to_json(self) -> dict[str, Any]:
        """Return a description that JSON can hold."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind} | {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Rebuild a column from :meth:`to_json`; fields that it lacks have their default."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
            if name in known
        }
        return cls(**values)
