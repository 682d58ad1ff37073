"""Rows that went through a chain of transforms, in one type, on one device."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from biglp._core.arrays import Rows, is_torch, to_device, to_numpy
from biglp._core.device import upload
from biglp._core.errors import BadRowsError, ParameterError
from biglp._core.size import Cost, Size
from biglp._rows.arrays import torch_type
from biglp._rows.encoding import Encoding
from biglp._rows.options import ReadOptions
from biglp._rows.source import DECODED_BYTES, Source
from biglp._transforms import Chain, Fill

KEPT_BYTES = 16 << 20
"""Projected rows are stored when all of them take no more than this. A projection from hundreds of
features to a few dozen is the slowest step of preparing rows, and its result is small: 20,000
images become 3 MB. Otherwise each sweep would project them again."""
HALVES = ("torch.float16", "torch.bfloat16")
PART_COPIES = 5
"""What decoding a row group in the middle of a sweep takes, counted in its size."""


class PartCache:
    """The part that each thread read last, shared between threads that read the same one.

    Memory is bounded by one part a thread, and neighbouring blocks of one row group, worked on by
    different threads, decode it once.
    """

    N_LOCKS = 16

    def __init__(self) -> None:
        self._own = threading.local()
        self._alive: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._locks = [threading.Lock() for _ in range(self.N_LOCKS)]

    def get(self, key: int, load: Callable[[], Any]) -> Any:
        """Return the part ``key``, loading it where no thread holds it."""
        last = self._own.__dict__.get("last")  # nothing yet in a thread that has not read
        if last is not None and last[0] == key:
            return last[1]
        self._own.last = last = None
        with self._locks[key % self.N_LOCKS]:
            part = self._alive.get(key)
            if part is None:
                self._alive[key] = part = load()
        self._own.last = (key, part)
        return part

    def __getstate__(self) -> dict[str, Any]:
        """Parts stay where they were read."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin empty."""
        PartCache.__init__(self)


class PreparedRows(Source):
    """Another source's rows in one floating type, through a chain of transforms, on one device.

    On a device rows are cast and transformed there, after they were copied as they are. With
    ``stay``, blocks keep their rows there once they have been brought.
    """

    def __init__(
        self,
        inner: Source,
        dtype: np.dtype[Any],
        chain: Chain | None = None,
        device: str = "cpu",
        stay: bool = False,
    ) -> None:
        self.inner = inner
        self.chain = chain = chain or Chain()
        self.n_rows = inner.n_rows
        self.n_features = chain.width(inner.n_features)
        self.dtype = dtype
        self.device = device
        self.stay = stay and not self.are_there(inner, dtype, chain)
        self.name = inner.name
        self.is_sparse = inner.is_sparse and chain.keeps_sparse
        self.stamps = inner.stamps
        self.encoding = inner.encoding
        self.feature_names = None if chain.embeds else inner.feature_names
        self.part_bytes = inner.part_bytes
        self.decoding_bytes = inner.decoding_bytes
        # Rows and which of them are there, filled as they are read; two threads may fill the same
        # rows, with the same numbers.
        self._stored: tuple[np.ndarray, np.ndarray] | None = None
        small = self.n_rows * self.n_features * dtype.itemsize <= KEPT_BYTES
        if chain.embeds and not self.is_sparse and device == "cpu" and small:
            shape = (self.n_rows, self.n_features)
            self._stored = np.empty(shape, dtype), np.zeros(self.n_rows, dtype=bool)

    @staticmethod
    def are_there(inner: Source, dtype: np.dtype[Any], chain: Chain) -> bool:
        """Whether the rows are on a device already, in a type that the sweeps can use.

        Half precision is one: it stays what it is, and is widened where it is worked on.
        """
        usable = inner.dtype in (dtype, np.float16)
        return inner.device != "cpu" and usable and not chain.changes_rows

    @staticmethod
    def cost(size: Size) -> Cost:
        """Decoding, and rows as they are read, in the type of the arithmetic, and scaled."""
        library = min(size.decoding, DECODED_BYTES)
        return Cost(
            libraries={"formats": library},
            opening=size.decoding - library,
            read_row=3 * size.row_bytes,
            block=PART_COPIES * size.part_bytes,
        )

    @property
    def n_input_features(self) -> int:
        """Number of features before the projection, of which sparse rows hold few."""
        return self.n_features if self.inner.is_sparse else self.inner.n_input_features

    def read(self, start: int, stop: int) -> Rows:
        if self.device != "cpu":
            return self.as_read(self.stored(start, stop))
        if self._stored is None:
            return self.prepared(self.inner.read(start, stop))
        stored, there = self._stored
        if not there[start:stop].all():
            stored[start:stop] = self.prepared(self.inner.read(start, stop))
            there[start:stop] = True
        rows = stored[start:stop]
        rows.flags.writeable = False  # a view: a caller that wants to change rows has to copy them
        return rows

    def stored(self, start: int, stop: int) -> Rows:
        """Return prepared rows in the type in which they stay on a device."""
        if self.device == "cpu":
            return self.read(start, stop)
        inner = self.inner
        kind = None if inner.is_sparse else torch_type(inner.dtype)
        if inner.device != "cpu" or kind is None:
            rows = inner.read(start, stop)
        else:
            device = self.device.removeprefix("torch:")
            shape = (stop - start, inner.n_features)
            rows = sys.modules["torch"].empty(shape, dtype=kind, device=device)
            upload(lambda first, last: inner.read(start + first, start + last), rows)
        is_half = is_torch(rows) and str(rows.dtype) in HALVES
        return rows if is_half and not self.chain.changes_rows else self.prepared(rows)

    def as_read(self, stored: Rows) -> Rows:
        """Return rows that are stored on a device in the type of the arithmetic."""
        return stored.to(torch_type(self.dtype))

    def take(self, indices: np.ndarray) -> Rows:
        if self._stored is not None and self._stored[1][indices].all():
            return self._stored[0][indices]
        return self.prepared(self.inner.take(indices))

    def __getstate__(self) -> dict[str, Any]:
        """Leave stored rows behind: they can be made again."""
        return {**self.__dict__, "_stored": None}

    def prepared(self, rows: Rows) -> Rows:
        """Prepare rows that were read from the inner source, or are like those."""
        if self.device == "cpu":
            # Rows too large to be scaled are found out by what comes of them, and explained then.
            with np.errstate(over="ignore", invalid="ignore"):
                return self.chain.apply(to_numpy(rows).astype(self.dtype, copy=False))
        if not is_torch(rows):
            if self.inner.is_sparse or torch_type(rows.dtype) is None:
                rows = rows.astype(self.dtype, copy=False)
            if self.inner.is_sparse:
                return to_device(self.chain.apply(rows), self.device)
            rows = to_device(rows, self.device)
        return self.chain.apply(rows.to(torch_type(self.dtype)))


def fill_missing(source: Source, options: ReadOptions) -> Source:
    """Fill missing values as the options or an earlier encoding say; else return the source."""
    known = options.encoding
    if known is not None:
        if known.n_features != source.n_features or not known.takes_arrays:
            raise BadRowsError(
                f"{source.name} has {source.n_features} features without names, but the model was "
                f"fitted on {known.n_inputs} columns ({known.n_features} features); give a table "
                "with the same columns."
            )
        # What sparse rows leave out is 0, not missing.
        plain = source.dtype.kind == "f" and not source.is_sparse and source.device == "cpu"
        if known.fillings is None or not plain:
            return source
        fill = Fill(np.array(known.fillings, dtype=np.float64))
    elif options.missing != "mean" or source.dtype.kind != "f":
        return source
    elif source.device != "cpu":
        raise ParameterError(
            f"missing='mean' cannot be used with {source.name} on {source.device}: missing values "
            "are filled in the computer's memory; give X.cpu(), or fill them on the GPU first."
        )
    elif source.is_sparse:
        raise ParameterError(
            f"missing='mean' cannot be used with {source.name}: what a sparse matrix leaves out "
            "is 0, not missing."
        )
    else:
        at_once = max((8 << 20) // (source.n_features * source.dtype.itemsize), 1)
        starts = range(0, source.n_rows, at_once)
        pieces = (source.read(start, min(start + at_once, source.n_rows)) for start in starts)
        fill = Fill.from_pieces(pieces, source.n_features, source.name)
    filled = PreparedRows(source, source.dtype, Chain([fill]))
    # The means go with the encoding to the model.
    means = tuple(fill.means.tolist())
    filled.encoding = Encoding(None, source.n_features, source.dtype.str, means=means)
    return filled
