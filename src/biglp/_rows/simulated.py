"""Made-up rows with class structure, any of which can be made anywhere.

Each class is a few Gaussian clusters. Row i belongs to a cluster chosen by a hash of i, and its
noise comes from a counter-based generator (Philox) set to a counter that depends on i alone. So a
block is the same however the rows are cut, on any machine, and 10⁹ rows need no file.

Sixteen random bits pick one of the 65,536 equally likely slices of the normal distribution, by
table: the marginals are normal up to ±4.3 standard deviations, at a fifth of the time that
``Generator.standard_normal`` takes, and the stream of raw bits is one that NumPy promises to keep.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Philox
from scipy.special import ndtri

from biglp._core.arrays import Rows
from biglp._core.errors import ParameterError
from biglp._core.progress import Progress
from biglp._files.local import atomic_write, npy_header
from biglp._rows.format import Format, LabelArray, LabelColumns, LabelPiece, labels_in_arrays
from biglp._rows.options import ReadOptions
from biglp._rows.source import Source

PREFIX = "sim:"
WORDS_PER_COUNT = 16
"""Sixteen-bit words that one step of the Philox counter gives."""
WRITE_BYTES = 4 << 20
_SCALES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_USAGE = (
    "write sim:ROWSxFEATURES, for example sim:1000000x100 or "
    "sim:100Mx100,classes=2,clusters=3,separation=6,noise=1,labels=100,seed=0"
)


@dataclass(frozen=True)
class Simulation:
    """What to make up, written as text: ``sim:ROWSxFEATURES,setting=value,…``."""

    n_rows: int
    n_features: int
    classes: int = 2  # equally likely
    clusters: int = 3  # of each class
    separation: float = 6.0  # typical distance between the centres of two clusters
    noise: float = 1.0  # standard deviation of each feature around its cluster's centre
    labels: int = 100  # labelled rows of each class
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"n_rows": 1, "n_features": 1, "classes": 1, "clusters": 1, "labels": 0, "seed": 0}
        given = vars(self)
        for name, value in least.items():
            if given[name] < value:
                raise ParameterError(
                    f"simulation: {name}={given[name]} must be at least {value}; {_USAGE}."
                )
        for name in ("separation", "noise"):
            if not 0 <= given[name] < np.inf:
                raise ParameterError(
                    f"simulation: {name}={given[name]} must be 0 or more; {_USAGE}."
                )

    @classmethod
    def parse(cls, spec: str) -> Simulation:
        """Read a description such as ``sim:100Mx100,classes=2,seed=7``."""
        shape, *settings = spec.removeprefix(PREFIX).split(",")
        sizes = shape.lower().split("x")
        if len(sizes) != 2:
            raise ParameterError(f"{spec!r} is no simulation; {_USAGE}.")
        given: dict[str, Any] = {
            "n_rows": _count(sizes[0], spec),
            "n_features": _count(sizes[1], spec),
        }
        kinds = {field.name: field.type for field in fields(cls)}
        for setting in settings:
            name, mark, value = setting.strip().partition("=")
            if not mark or name not in kinds or name in given:
                known = ", ".join(sorted(set(kinds) - {"n_rows", "n_features"}))
                raise ParameterError(
                    f"{spec!r}: {setting.strip()!r} is not known or given twice; the settings are "
                    f"{known}; {_USAGE}."
                )
            if kinds[name] != "float":
                given[name] = _count(value, spec)
                continue
            try:
                given[name] = float(value)
            except ValueError as error:
                raise ParameterError(f"{spec!r}: {value!r} is not a number; {_USAGE}.") from error
        return cls(**given)


def _count(text: str, spec: str) -> int:
    match = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:e[0-9]+)?)([KMGB]?)", text.strip(), re.I)
    value = float(match[1].replace("_", "")) * _SCALES[match[2].upper()] if match else 0.5
    if value != int(value):
        raise ParameterError(f"{spec!r}: {text!r} is not a whole number; {_USAGE}.")
    return int(value)


class SimulatedSource(Source):
    """Rows of a simulation, float32, made when they are read."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.n_rows, self.n_features = simulation.n_rows, simulation.n_features
        self.name = f"{PREFIX}{self.n_rows}x{self.n_features}"
        self.dtype = np.dtype(np.float32)

        def digest(word: str, size: int) -> int:
            text = f"{word} {simulation.seed}".encode()
            return int.from_bytes(hashlib.blake2b(text, digest_size=size).digest(), "little")

        self._key = digest("noise", 16)
        self._hash_key = np.uint64(digest("clusters", 8))
        self._counts_per_row = -(-self.n_features // WORDS_PER_COUNT)
        # Two centres are ``separation`` apart on average.  (clusters, m)
        rng = np.random.default_rng([simulation.seed, 0])
        scale = simulation.separation / np.sqrt(2 * simulation.n_features)
        shape = (simulation.classes * simulation.clusters, simulation.n_features)
        self._centres = (scale * rng.standard_normal(shape)).astype(np.float32)

    def read(self, start: int, stop: int) -> Rows:
        rows = np.arange(start, stop, dtype=np.uint64)
        return self._made(self._bits(start, stop), rows)

    def take(self, indices: np.ndarray) -> Rows:
        indices = np.asarray(indices, dtype=np.int64)
        if len(indices) == 0:
            return np.empty((0, self.n_features), dtype=self.dtype)
        cuts = np.flatnonzero(np.diff(indices) != 1) + 1
        runs = np.split(indices, cuts)
        bits = np.concatenate([self._bits(int(run[0]), int(run[-1]) + 1) for run in runs])
        return self._made(bits, indices.astype(np.uint64))

    def truth(self, start: int, stop: int) -> np.ndarray:
        """Return the classes of rows ``start`` to ``stop`` (exclusive), 0 to classes - 1."""
        return self.classes_of(np.arange(start, stop))

    def classes_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the classes of any rows."""
        return (self._clusters(rows.astype(np.uint64)) % self.simulation.classes).astype(np.int16)

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return the classes where a row is labelled and -1 where not."""
        chosen = labelled_rows(self.simulation)
        low, high = np.searchsorted(chosen, [start, stop])
        out = np.full(stop - start, -1, dtype=np.int16)
        out[chosen[low:high] - start] = self.classes_of(chosen[low:high])
        return out

    def _bits(self, start: int, stop: int) -> np.ndarray:
        """Sixteen random bits for each number of the rows.  (rows, features)."""
        counts = (stop - start) * self._counts_per_row
        stream = Philox(key=self._key, counter=start * self._counts_per_row)
        words = stream.random_raw(counts * 4).astype("<u8", copy=False).view("<u2")
        return words.reshape(stop - start, -1)[:, : self.n_features]

    def _made(self, bits: np.ndarray, rows: np.ndarray) -> np.ndarray:
        out = np.take(_normal_table(self.simulation.noise), bits, mode="clip")
        out += self._centres[self._clusters(rows)]
        return out

    def _clusters(self, rows: np.ndarray) -> np.ndarray:
        """Cluster of each row; cluster c belongs to class c modulo the number of classes."""
        # Scramble 64-bit numbers one to one (the finaliser of SplitMix64).
        mixed = rows + self._hash_key
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        n_clusters = np.uint64(self.simulation.classes * self.simulation.clusters)
        return ((mixed >> np.uint64(32)) * n_clusters >> np.uint64(32)).astype(np.int64)


@lru_cache(maxsize=8)
def labelled_rows(simulation: Simulation) -> np.ndarray:
    """Rows that are labelled: ``labels`` of each class (or all it has), increasing."""
    source = SimulatedSource(simulation)
    rng = np.random.default_rng([simulation.seed, 1])
    wanted = np.full(simulation.classes, simulation.labels)
    chosen: set[int] = set()
    small = simulation.n_rows <= 1 << 20
    size = 4 * int(wanted.sum()) + 64
    for _ in range(1 if small else 1000):
        n_rows = simulation.n_rows
        draw = rng.permutation(n_rows) if small else rng.integers(n_rows, size=size)
        for row, label in zip(draw.tolist(), source.classes_of(draw).tolist(), strict=True):
            if wanted[label] and row not in chosen:
                chosen.add(row)
                wanted[label] -= 1
                if not wanted.any():
                    break
        if not wanted.any():
            break
    return np.array(sorted(chosen), dtype=np.int64)


def write_simulation(
    path: str | os.PathLike[str],
    simulation: Simulation,
    *,
    n_threads: int = 2,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Write a simulation to files: the rows, the labels (-1 where there is none) and the truth.

    ``x.npy`` goes with ``x.labels.npy`` and ``x.truth.npy``; each is written whole or not at all.
    ``n_threads`` blocks are made at once.
    """
    source = SimulatedSource(simulation)
    rows = Path(path)
    paths = {name: rows.with_name(f"{rows.stem}.{name}.npy") for name in ("labels", "truth")}
    paths["rows"] = rows
    shape = (simulation.n_rows, simulation.n_features)
    plan = (
        (paths["labels"], source.labels, (simulation.n_rows,), np.dtype(np.int16)),
        (paths["truth"], source.truth, (simulation.n_rows,), np.dtype(np.int16)),
        (rows, source.read, shape, source.dtype),
    )
    done = progress or Progress()
    for target, make, full_shape, dtype in plan:
        with (
            atomic_write(target) as file,
            done.task(f"writing {target}", simulation.n_rows) as task,
        ):
            file.write(npy_header(dtype, full_shape))
            width = int(np.prod(full_shape[1:]))
            at_once = max(WRITE_BYTES // (dtype.itemsize * width), 1)
            for block in _in_threads(make, simulation.n_rows, at_once, n_threads):
                file.write(block.reshape(-1).view(np.uint8).data)
                task.advance(len(block))
    return paths


def _in_threads(
    make: Callable[[int, int], np.ndarray], n_rows: int, at_once: int, n_threads: int
) -> Iterator[np.ndarray]:
    """Make blocks in threads and yield them in order, with few of them waiting."""
    waiting: deque[Future[np.ndarray]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for start in range(0, n_rows, at_once):
            waiting.append(pool.submit(make, start, min(start + at_once, n_rows)))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@lru_cache(maxsize=8)
def _normal_table(noise: float) -> np.ndarray:
    slices = (np.arange(1 << 16) + 0.5) / (1 << 16)
    return (noise * ndtri(slices)).astype(np.float32)


class SimulatedFormat(Format):
    """Rows, labels and classes made from a description, ``sim:…``."""

    name = "simulated"
    holds_labels = True
    in_files = False

    def open(self, files: Sequence[str], options: ReadOptions) -> SimulatedSource:
        """Make rows as the description says."""
        named = ("columns", "label_column", "drop", "categorical", "text", "missing", "dtype")
        options.refuse(files[0], *named)
        return SimulatedSource(Simulation.parse(files[0]))

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels of all rows."""
        source = SimulatedSource(Simulation.parse(files[0]))
        shape, dtype = (source.n_rows,), np.dtype(np.int16)
        return labels_in_arrays([LabelArray(source.name, shape, dtype, source.labels)])


SIMULATED = SimulatedFormat()
