"""What a low-rank factor is: a feature map φ(x) ∈ R^r with W ≈ ΦΦᵀ, fitted to the rows.

A factor says everything about itself: which parameters it has, what it needs of the rows, how it is
fitted, what it takes of memory and time. A new one is a subclass in a file of its own and a line in
``biglp._graph.FACTORS``. The graph that a user gives is no factor: it has features, its rows, but
nothing is fitted (:mod:`.own`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from biglp._algebra.systems import MOST_LABELLED
from biglp._compiled import column_sums
from biglp._core.arrays import Array, Rows
from biglp._core.blocks import Block
from biglp._core.settings import GraphSettings
from biglp._core.size import DEFAULT_EFFORT, TORCH, Cost, Size, pair_seconds
from biglp._engines import Engine
from biglp._files.runfolder import Checkpoint
from biglp._graph.stores import FeatureStore, NoStore, Packed
from biglp._rows.prepared import (
    NAMED_BYTES,
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    PreparedRows,
    Sample,
    kept_rows,
)
from biglp._transforms.project import text_bytes

ROWS_PER_LANDMARK = 100
"""Rows a landmark in the sample that k-means works on; more does not help classification."""
DEVICE_ANSWERS = 16
"""Numbers for each class that a row has on a device while it is answered."""
SWEEP_ENTRY = 4e-9
"""Seconds of a row in the sums for each of its features, once these are made."""
DENSE_COLUMNS = 128
"""Columns up to which a dense product is faster than a sparse one with its few entries a row."""


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
            rows = block.stored_rows() if self.takes_half else block.rows()
            features = self.features(rows)
            stored = self.store.keep(self.pack(features))
            if stored is None:
                return features
            block.memory["features"] = stored
            if not self.store.stays(stored):
                return features
        return self.unpack(self.store.load(stored))

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


class Factor(FeatureMap):
    """A low-rank factor of the similarity graph, fitted to the rows."""

    # The `factor_params` it knows; each is checked by `check(name, value)`.
    params: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}
    # Whether "auto" may scale the features: not where their values are what counts.
    scales_features: ClassVar[bool] = True
    n_landmarks_counts: ClassVar[bool] = True  # whether `n_landmarks` changes anything
    learnt: ClassVar[bool] = False  # whether fitting it takes sweeps over all rows
    # Whether rows are similarities between pairs of rows, and so no features that could be scaled,
    # shown or regressed on.
    pairwise: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> Factor:
        """Fit the factor to the training rows."""

    @classmethod
    def fit_or_resume(
        cls, rows: TrainingRows, settings: GraphSettings, checkpoint: Checkpoint
    ) -> Factor:
        """Fit the factor, or take it from a run that was interrupted after it was fitted."""
        step = f"{rows.view}-factor"
        return cls.from_state(checkpoint.step(step, lambda: cls.fit(rows, settings).state()))

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Factor:
        """Rebuild a factor that scores new rows."""

    @classmethod
    def rank_for(cls, settings: GraphSettings, n_rows: int, n_features: int) -> int:
        """Rank that a fit will have, at most: the number of landmarks, given or chosen."""
        if not isinstance(settings.landmarks, str) and np.ndim(settings.landmarks) == 2:
            return len(settings.landmarks)
        return min(settings.n_landmarks or cls.default_landmarks(n_rows, settings.effort), n_rows)

    @staticmethod
    def default_landmarks(n_rows: int, effort: str = DEFAULT_EFFORT) -> int:
        """A share of the rows, within what is quick and what is useful."""
        return max(min(n_rows // 10, 100), 50)

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """What a graph with this factor takes."""
        rank, a_row, n_rows = size.rank, int(size.row_bytes), size.n_rows
        square = 8 * rank**2
        chosen = 8 * min(size.n_labelled, MOST_LABELLED) * (4 * rank + 10 * size.n_classes)
        # The sample behind scaling and bandwidth, before and after scaling.
        fitting = 2 * min(SAMPLE_ROWS * a_row, max(SAMPLE_BYTES, 100 * a_row), n_rows * a_row)
        if cls.n_landmarks_counts:
            fitting += 6 * 8 * rank * size.width  # landmarks and their sums
            if isinstance(settings.landmarks, str) and settings.landmarks == "kmeans":
                drawn = size.directions * size.dtype.itemsize or a_row
                fitting += min(ROWS_PER_LANDMARK * rank, n_rows) * drawn * 5 // 4
        if size.directions:
            # The sample stays sparse; its parts are weighed, transposed and projected.
            fitting += 2 * min(SAMPLE_ROWS, n_rows) * a_row
            fitting += text_bytes(size.n_features, size.directions)
        prepared = prepared_bytes(size)
        kept = int(kept_rows(n_rows, prepared) * prepared) + NAMED_BYTES
        sweep = SWEEP_ENTRY * n_rows * rank
        seconds = {} if cls.unit_degrees else {"degrees": sweep / 4}
        return cls.sweep_cost(size, settings.device)._replace(
            libraries=TORCH if settings.device != "cpu" else {},
            fitting=fitting,
            fixed=8 * square + chosen + kept,
            sums=square,
            stored_row=rank * size.dtype.itemsize,
            gpu=3 * square,
            seconds={**seconds, "Gram": sweep, "learning": rank / 4000, "labels": sweep / 4},
            seconds_row=rank * pair_seconds(size.width),
        )


@dataclass(frozen=True)
class TrainingRows:
    """The training rows, ready for the sweeps: prepared, cut, with an engine to visit them."""

    engine: Engine
    source: PreparedRows  # scaled rows in the type of the arithmetic
    blocks: Sequence[Block]
    sample: Sample
    view: str = "rows"  # name of this view of the rows in checkpoints and model files


def prepared_bytes(size: Size) -> float:
    """Bytes of a row of the sample behind the chain."""
    return size.directions * size.dtype.itemsize or size.row_bytes
