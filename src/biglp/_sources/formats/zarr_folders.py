"""Arrays in Zarr folders: ``folder.zarr`` or ``folder.zarr::name``, read chunk by chunk."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from biglp._core.errors import MissingExtraError
from biglp._files.local import FileStamp
from biglp._sources.formats.chunked import ArrayFile, ChunkedFormat
from biglp._sources.formats.inside import Facts

ONLY = "array"
"""What the array of a folder is called that is no group."""
DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup")


class ZarrFolder(ArrayFile):
    """One Zarr folder, an array or a group of arrays."""

    kind = "Zarr"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        names = [os.path.join(path, name) for name in DESCRIPTIONS]
        self._description = FileStamp.of(next(filter(os.path.exists, names), names[0]))

    def open_file(self) -> Any:
        """Open the folder."""
        return _zarr(self.path).open(self.path, mode="r")

    def facts(self) -> dict[str, Facts]:
        """Names, shapes and types of all arrays, those in groups too."""
        if not hasattr(self.file, "members"):
            return {ONLY: _facts(self.file)}
        return {
            name: _facts(thing)
            for name, thing in sorted(self.file.members(max_depth=None))
            if not hasattr(thing, "members")
        }

    def array(self, name: str) -> Any:
        """One of its arrays."""
        return self.file[name] if hasattr(self.file, "members") else self.file

    def check(self) -> None:
        """Raise when it was made again; to look at every chunk each time would take too long."""
        self._description.check()


class ZarrFormat(ChunkedFormat):
    """Zarr folders."""

    name = ZarrFolder.kind
    file = ZarrFolder


def _facts(array: Any) -> Facts:
    return Facts(array.shape, np.dtype(array.dtype))


def _zarr(path: str) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is read through zarr, which cannot be loaded here ({error}); install it "
            'with: pip install "biglp[zarr]".'
        ) from error
    return zarr


ZARR = ZarrFormat()
