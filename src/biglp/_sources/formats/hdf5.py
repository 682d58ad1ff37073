"""Data sets in HDF5 files: ``file.h5::name``, read through h5py where they are."""

from __future__ import annotations

from typing import Any

from biglp._core.errors import MissingExtraError
from biglp._sources.formats.chunked import ArrayFile, ChunkedFormat
from biglp._sources.formats.inside import Facts


class Hdf5File(ArrayFile):
    """One HDF5 file."""

    kind = "HDF5"

    def open_file(self) -> Any:
        """Open the file."""
        return _h5py(self.path).File(self.path, "r")

    def facts(self) -> dict[str, Facts]:
        """Names, shapes and types of all data sets, those in groups too."""
        found: dict[str, Facts] = {}
        data_set = _h5py(self.path).Dataset

        def note(name: str, thing: Any) -> None:
            if isinstance(thing, data_set) and thing.shape is not None:
                found[name] = Facts(thing.shape, thing.dtype)

        self.file.visititems(note)
        return found


class Hdf5Format(ChunkedFormat):
    """HDF5 files."""

    name = Hdf5File.kind
    file = Hdf5File


def _h5py(path: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is read through h5py, which cannot be loaded here ({error}); install it "
            'with: pip install "biglp[hdf5]".'
        ) from error
    return h5py


HDF5 = Hdf5Format()
