"""What sources that live in files have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._sources.base import Source


class FileSource(Source):
    """A source in one or more files: cheap to pickle, and aware of its files changing.

    Attributes
    ----------
    kind : str
        Name of the format.
    """

    kind: str = "file"

    def ask_for(self, start: int, stop: int) -> None:
        """Let the disk begin with rows that will be read soon, where that is possible."""

    def fingerprint(self) -> dict[str, Any]:
        """Facts, ready for JSON, that change when the rows may have changed."""
        return {
            "kind": self.kind,
            "files": [stamp.facts() for stamp in self.stamps],
            "shape": [self.n_rows, self.n_features],
            "dtype": np.dtype(self.dtype).str,
            "encoding": self.encoding.to_json() if self.encoding else None,
        }


def no_rows(name: str) -> BadRowsError:
    """Explain that a table has no rows."""
    return BadRowsError(f"{name} has no rows; at least 1 is required.")
