"""Rows to normalised features φ̄ = φ/√d: the part of a graph that travels to other processes.

A feature map φ(x) ∈ R^r has W ≈ ΦΦᵀ. Its features are normalised by the degrees of the training
rows (Eq. 2.2, Algorithm S.2), with repair:

d = F·(Fᵀ1) holds the degrees and F̄ = D^(−1/2)·F, so that S = F̄·F̄ᵀ. With s = Fᵀ1 a row needs only
its own features: d_i = f_i · s. Where a factor hands out F before mixing, F = P·T, the same is
d_i = p_i · (T·s), and F̄ is found as D^(−1/2)·P.

A low-rank factor with negative entries (Nyström) can give degrees of zero or less, of which the
root would be NaN. A row is repaired when its degree is both far below the mean degree and tiny
beside ‖f_i‖·‖s‖, that is when f_i and s are at a right angle or worse; its degree becomes
``REPAIR_COSINE · ‖f_i‖ · ‖s‖``, which bounds the row's influence. A row without features stays 0.
"""

from __future__ import annotations

import math
import tempfile
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from biglp._algebra.systems import is_sparse_rank
from biglp._compiled import column_sums, gram_matrix, native
from biglp._compiled import gpu as fused
from biglp._compiled.pairs import Pairs
from biglp._core.arrays import (
    Array,
    RowEntries,
    Rows,
    is_torch,
    like,
    namespace,
    to_csr,
    to_numpy,
)
from biglp._core.blocks import Block
from biglp._core.errors import DISK_FULL
from biglp._core.size import Cost, Size
from biglp._files.local import read_at, write_at
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets

REPAIR_COSINE = 1e-3
SUSPECT_SHARE = 1e-2
"""Share of the mean degree below which a row's degree is looked at more closely."""
DEVICE_ANSWERS = 16
"""Numbers for each class that a row has on a device while it is answered."""
DENSE_COLUMNS = 128
"""Columns up to which a dense product is faster than a sparse one with its few entries a row."""


# --------------------------------------------------------------------------------------------------
# Where a block's features wait between two sweeps: in memory, in a temporary file, or nowhere.
#
# What is in memory is a tuple of the arrays themselves, so that a change of theirs stays too; what
# is in a file is a list of places.
#
# Reading 20 features back is several times faster than reading 100 columns from disk and computing
# them again. What does not fit the memory budget goes to a file that has no name, so that the
# system frees it whatever happens to the process; what fits neither is computed again. The file of
# features has to share the system's cache with rows that are read, so that the less of it there is
# the better.


Packed = tuple[Array, ...]


class FeatureStore(ABC):
    """Keeps tuples of arrays."""

    @abstractmethod
    def keep(self, arrays: Packed) -> Any:
        """Keep arrays and return what :meth:`load` needs, or None when they are not kept."""

    def load(self, stored: Any) -> Packed:
        """The arrays that were kept."""
        if isinstance(stored, tuple):
            return stored
        arrays = []
        for file, start, shape, dtype in stored:
            array = np.empty(shape, dtype=dtype)
            data, position = array.reshape(-1).view(np.uint8).data, start
            while data:
                got = read_at(file.fileno(), data, position)
                data, position = data[got:], position + got
            arrays.append(array)
        return tuple(arrays)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """An array to be filled and then kept, by the same thread."""
        return np.empty(shape, dtype)


class NoStore(FeatureStore):
    """Keeps nothing."""

    def keep(self, arrays: Packed) -> Any:
        return None


class MemoryStore(FeatureStore):
    """Keeps copies in memory, packed into a few large arrays for each thread.

    Thousands of separate arrays of a megabyte would each be given fresh pages by the system, four
    kilobytes at a time; filling those costs more than computing the features. Large arrays get
    large pages. A buffer is freed when the last copy in it is.
    """

    BUFFER_BYTES = 64 << 20

    def __init__(self) -> None:
        self._current = threading.local()

    def keep(self, arrays: Packed) -> Any:
        """Keep a copy of NumPy arrays; tensors are kept as they are."""
        stored = []
        for array in arrays:
            if isinstance(array, np.ndarray):
                room = self.room(array.shape, array.dtype)
                if room.ctypes.data != array.ctypes.data:
                    room[...] = array
                # The next copy starts on a cache line of its own.
                self._current.__dict__["used"] += -(-array.nbytes // 64) * 64
                array = room
            stored.append(array)
        return tuple(stored)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """The memory to which an array would be copied."""
        current = self._current.__dict__
        buffer, used = current.get("buffer"), current.get("used", 0)
        n_bytes = math.prod(shape) * dtype.itemsize
        if buffer is None or used + n_bytes > buffer.nbytes:
            buffer, used = np.empty(max(self.BUFFER_BYTES, n_bytes), dtype=np.uint8), 0
        current.update(buffer=buffer, used=used)
        room: np.ndarray = buffer[used : used + n_bytes].view(dtype).reshape(shape)
        return room

    def __getstate__(self) -> dict[str, Any]:
        return {}  # another process starts with an empty buffer

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._current = threading.local()


class DiskStore(FeatureStore):
    """Keeps arrays in a temporary file without a name, in ``folder`` or the system's own.

    What is kept holds on to the file: on another process a store is unpacked with each parcel of
    work and forgotten after it, while the blocks stay.
    """

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._end = 0
        self._file: Any = None
        self._full = False

    def keep(self, arrays: Packed) -> Any:
        """Append arrays to the file; on a full disk what comes is computed again instead."""
        if self._full:
            return None
        stored = []
        try:
            for array in arrays:
                contiguous = np.ascontiguousarray(array)
                with self._lock:
                    if self._file is None:
                        # Closed, and so removed, when neither the store nor a block needs it.
                        self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
                    start, self._end = self._end, self._end + contiguous.nbytes
                data, position = contiguous.reshape(-1).view(np.uint8).data, start
                while data:
                    written = write_at(self._file.fileno(), data, position)
                    data, position = data[written:], position + written
                stored.append((self._file, start, contiguous.shape, contiguous.dtype))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            self._full = True
            return None
        return stored

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder}  # another process has a file of its own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["folder"])  # type: ignore[misc]


class SpillingStore(FeatureStore):
    """Keeps ``most_bytes`` in memory, and what comes later in a file in ``folder``."""

    def __init__(self, most_bytes: int, folder: str | None = None) -> None:
        self._left, self._lock = most_bytes, threading.Lock()
        self._memory, self._disk = MemoryStore(), DiskStore(folder)

    def keep(self, arrays: Packed) -> Any:
        n_bytes = sum(array.nbytes for array in arrays)
        with self._lock:
            fits = n_bytes <= self._left
            self._left -= n_bytes if fits else 0
        return self._memory.keep(arrays) if fits else self._disk.keep(arrays)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        if math.prod(shape) * dtype.itemsize <= self._left:
            return self._memory.room(shape, dtype)
        return super().room(shape, dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self._disk.folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A worker unpacks a store with every parcel of work: nobody would count what is in memory.
        self.__init__(0, state["folder"])  # type: ignore[misc]


# --------------------------------------------------------------------------------------------------


def not_taken(
    what: str, taken: int, of: int, seconds: float, points: float | None
) -> dict[str, str | int | float | None]:
    """A line of ``report_["left_out"]``: ``taken`` of so many, what the others would have cost, and
    about how many points of accuracy they would have brought.
    """
    return {
        "what": what,
        "taken": taken,
        "of": of,
        "seconds": round(seconds, 2),
        "points": None if points is None else round(points, 1),
    }


class FeatureMap(ABC):
    """Features φ(x) of rows, of the training rows and of new ones."""

    kind: ClassVar[str]  # its name in model files
    # Whether the features of a training row are kept with its block and found nowhere else.
    kept_with_blocks: bool = False
    # Whether rows may come in half precision, which stay so on a device.
    takes_half: ClassVar[bool] = False
    # Whether `features` makes a new array that may be overwritten.
    overwritable: ClassVar[bool] = True
    # Whether every degree is 1 once the columns are scaled (anchor graphs): no sweep for degrees.
    # Features are then not negative, add up to 1 and, in CSR, are as many in each row.
    unit_degrees: ClassVar[bool] = False
    rank: int  # r; 0 where features are a row of S, whose eigenvectors nobody asks for
    # T (p, r) with φ = p·T, for a factor that hands out p: multiplying r × r sums by T afterwards
    # is cheaper than multiplying every row.
    mixing: np.ndarray | None = None
    store: FeatureStore = NoStore()  # where the features of a block wait between sweeps
    # Whether the loops of biglp._compiled make the features and what the sweeps need of them.
    compiled: bool = False

    @abstractmethod
    def features(self, rows: Rows) -> Array:
        """Features of any rows, before mixing.  (b, m) → (b, p)."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which ``from_state`` rebuilds the map for new rows."""

    @classmethod
    def sweep_cost(cls, size: Size, device: str) -> Cost:
        """What a sweep takes: what is stored for a row, its features and its answers."""
        width = size.values + 3 * size.rank + size.n_classes
        if device != "cpu":
            # As they come, in the type of the arithmetic, scaled; nothing is copied of rows that
            # are there. Answers are made of several arrays.
            width += 2 * size.values * (size.gpu_row > 0) + DEVICE_ANSWERS * size.n_classes
        return Cost(row=int(size.dtype.itemsize * width) + 64)

    def block_features(self, block: Block) -> Array:
        """Features of a training block, from the store where they are kept.  (b, p)."""
        stored = block.memory.get("features")
        if stored is None:
            rows = block.rows(stored=self.takes_half)
            features = self.features(rows)
            stored = self.store.keep(self.pack(features))
            if stored is None:
                return features
            block.memory["features"] = stored
            if not isinstance(stored, tuple):  # not in memory
                return features
        return self.unpack(stored if isinstance(stored, tuple) else self.store.load(stored))

    def block_sums(self, block: Block) -> tuple[Array]:
        """Column sums of the features of a training block, which are kept on the way.  (p,)."""
        return (column_sums(self.block_features(block)),)

    def pack(self, features: Array) -> Packed:
        """Features as plain arrays for the store; :meth:`unpack` undoes it."""
        return (features,)

    def unpack(self, packed: Packed) -> Array:
        return packed[0]

    def for_new_rows(self) -> FeatureMap:
        """The map as new rows need it, without what belongs to the training rows."""
        return self

    def left_out(self, effort: str, n_rows: int) -> list[dict[str, Any]]:
        """What a larger effort would add: lines of the report."""
        return []

    def describe(self) -> dict[str, Any]:
        """Facts worth reporting."""
        return {"factor": self.kind, "rank": self.rank}


@dataclass(frozen=True)
class Normalisation:
    """Turns features into normalised features."""

    column_sums: np.ndarray | None  # s = Fᵀ1, (r,); None where degrees are 1
    n_rows: int  # behind the column sums
    mixing: np.ndarray | None = None  # T (p, r), when features come before mixing

    @cached_property
    def weights(self) -> np.ndarray | None:
        """What features are multiplied by to give the degree; None where degrees are 1.  (p,)."""
        sums = self.column_sums
        return sums if sums is None or self.mixing is None else self.mixing @ sums

    @cached_property
    def least(self) -> float:
        """Degree up to which a row is looked at more closely."""
        if self.column_sums is None:
            return 0.0
        return SUSPECT_SHARE * float(np.linalg.norm(self.column_sums)) ** 2 / self.n_rows

    def apply(self, features: Array, *, in_place: bool = False) -> tuple[Array, int]:
        """F̄ of a block (before mixing) and the number of its rows that were repaired."""
        factors, n_repaired = self.factors(features)
        if in_place:
            features *= factors[:, None]
            return features, n_repaired
        return features * factors[:, None], n_repaired

    def factors(self, features: Array) -> tuple[Array, int]:
        """1/√d of a block's rows, and the number of those that were repaired.  (b, p) → (b,)."""
        weights = self.weights
        assert weights is not None
        assert self.column_sums is not None
        xp, n_repaired = namespace(features), 0
        # BLAS may raise the flag in lanes it does not use; new rows may be of any size.
        with np.errstate(over="ignore", invalid="ignore"):
            degrees = features @ like(features, weights)
        suspects = ~(degrees > self.least)
        if bool(suspects.any()):
            rows = features[suspects]
            if self.mixing is not None:
                rows = rows @ like(rows, self.mixing)
            with np.errstate(over="ignore"):  # an infinite degree leaves nothing of a row
                norms = xp.sqrt((rows * rows).sum(1))
                floor = REPAIR_COSINE * float(np.linalg.norm(self.column_sums)) * norms
            low = degrees[suspects]
            lifted, empty = ~(low >= floor), norms == 0
            low = xp.where(lifted, floor, low)
            # Where no training row has features there is nothing to be tied to.
            low = xp.where(low > 0, low, xp.full_like(low, xp.inf))
            # A row without features has nothing to divide: any positive degree leaves it at zero.
            degrees[suspects] = xp.where(empty, xp.ones_like(low), low)
            n_repaired = int((lifted & ~empty).sum())
        return 1.0 / xp.sqrt(degrees), n_repaired

    def summed(self, features: Array, *, in_place: bool, ready: bool) -> tuple[Any, ...] | None:
        """Gram matrix and column sums of F̄, and rows that were repaired, in one read of a tensor.

        None where that cannot be done. ``in_place`` turns features into F̄; ``ready`` says that they
        are F̄ already.
        """
        weights = None if ready else self.weights
        sums = fused.gram(features, weights, self.least, in_place=in_place)
        if sums is None or weights is None:
            return sums and (*sums[:2], 0)
        gram, totals, factors = sums
        suspects, n_repaired = factors == 0, 0
        if bool(suspects.any()):
            rows, n_repaired = self.apply(features[suspects])
            if in_place:
                features[suspects] = rows
            gram, totals = gram + gram_matrix(rows), totals + column_sums(rows)
        return gram, totals, n_repaired


@dataclass(frozen=True)
class Features:
    """A feature map and the degrees of its graph."""

    factor: FeatureMap
    normalisation: Normalisation

    def for_new_rows(self) -> Features:
        """The same without what belongs to the training rows."""
        return replace(self, factor=self.factor.for_new_rows())

    def of_rows(self, rows: Rows) -> Array:
        """Normalised features of any rows, before mixing.  (b, m) → (b, p)."""
        features = self.factor.features(rows)
        if self.normalisation.column_sums is None:  # degrees are 1
            return features
        return self.normalisation.apply(features)[0]

    def of_block(self, block: Block, features: Array | None = None) -> tuple[Array, int]:
        """Normalised features of a training block, and its rows whose degree was repaired.

        ``features`` are those of the block, where they are at hand. Stored ones are overwritten.
        """
        if features is None:
            features = self.factor.block_features(block)
        if self.normalisation.column_sums is None:
            return features, 0
        repaired = block.memory.get("repaired")
        if repaired is not None:
            return features, repaired  # an earlier sweep has left them normalised
        overwritable = self.factor.overwritable
        features, repaired = self.normalisation.apply(features, in_place=overwritable)
        if overwritable and isinstance(block.memory.get("features"), tuple):
            block.memory["repaired"] = repaired  # they stay so in memory
        return features, repaired

    def of_chosen(self, block: Block, rows: np.ndarray) -> Any:
        """Normalised features of those of some rows, by number, that a training block holds."""
        first, last = np.searchsorted(rows, [block.start, block.stop])
        features, _ = self.of_block(block)
        return float64_features(features[rows[first:last] - block.start])

    def sums_of_block(self, block: Block, labels: Labels | Targets) -> tuple[Any, ...]:
        """What a training block adds to H, B and t, and how many of its rows were repaired."""
        factor = self.factor
        features = factor.block_features(block)
        normalisation = self.normalisation
        ready = "repaired" in block.memory or normalisation.column_sums is None
        # Whether features stay in memory as this sweep leaves them.
        stays = factor.overwritable and isinstance(block.memory.get("features"), tuple)
        # In one read of the features, which normalises them, where there are loops for it.
        in_place = factor.compiled and not ready and isinstance(features, np.ndarray)
        sums: tuple[Any, ...] | None = None
        if in_place:
            native.check_can_run()
            by, least = normalisation.weights, normalisation.least
            assert by is not None
            sums = native.gram(features, by, least, normalisation.factors)
        elif is_torch(features):
            sums = normalisation.summed(features, in_place=stays, ready=ready)
        if sums is not None:
            matrix, totals, repaired = sums
            if stays and not ready:
                block.memory["repaired"] = repaired
            repaired = block.memory.get("repaired", repaired)
            normalised = ready or stays or in_place
        else:
            features, repaired = self.of_block(block, features)
            if factor.unit_degrees and sparse.issparse(features):
                matrix = Pairs.of(features, labels.n_rows)
            else:
                matrix = gram_matrix(features)
            totals, normalised = column_sums(features), True
        rows, given = labels.targets_within(block.start, block.stop)
        labelled = features[rows] if normalised else normalisation.apply(features[rows])[0]
        if isinstance(labelled, RowEntries):
            targets = labelled.csr().T @ given
            if is_sparse_rank(factor.rank, len(labels.rows)):
                matrix = to_csr(matrix)  # where r × r numbers would be too many
        else:
            targets = labelled.T @ like(labelled, given)
        return matrix, targets, totals, np.array(repaired)


def float64_features(features: Array) -> Any:
    """Features of a few rows, from any device, for the small algebra; CSR remains CSR."""
    features = to_numpy(features)
    if sparse.issparse(features):
        return sparse.csr_array(features, dtype=np.float64)
    return np.asarray(features, dtype=np.float64)
