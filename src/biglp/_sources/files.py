"""What sources that live in files have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._core.files import FileStamp
from biglp._sources.base import Source
from biglp._sources.tables.encoding import Encoding


class FileSource(Source):
    """A source in one or more files: cheap to pickle, and aware of its files changing.

    Attributes
    ----------
    kind : str
        Name of the format.
    stamps : tuple of FileStamp
        The files as they were when the source was opened.
    feature_names : tuple of str or None
        Names of the features, where the format has names.
    encoding : Encoding or None
        How columns became features, to be stored with a model and applied to new files.
    """

    kind: ClassVar[str] = "file"
    stamps: tuple[FileStamp, ...] = ()
    feature_names: tuple[str, ...] | None = None
    encoding: Encoding | None = None

    @property
    def name(self) -> str:
        """The path, or the first of the paths."""
        return describe_files(self.stamps)

    def check_unchanged(self) -> None:
        """Raise when one of the files is no longer what it was."""
        for stamp in self.stamps:
            stamp.check()

    def fingerprint(self) -> dict[str, Any]:
        """Facts, ready for JSON, that change when the rows may have changed."""
        return {
            "kind": self.kind,
            "files": [stamp.facts() for stamp in self.stamps],
            "shape": [self.n_rows, self.n_features],
            "dtype": np.dtype(self.dtype).str,
            "encoding": self.encoding.to_json() if self.encoding else None,
        }


def describe_files(stamps: tuple[FileStamp, ...]) -> str:
    """Name one file, or the first of several."""
    if len(stamps) == 1:
        return stamps[0].path
    return f"{stamps[0].path} and {len(stamps) - 1} more" if stamps else "no file"


def check_not_empty(n_rows: int, name: str) -> None:
    """Refuse a table without rows."""
    if n_rows == 0:
        raise BadRowsError(f"{name} has no rows; at least 1 is required.")
