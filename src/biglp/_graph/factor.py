"""What a low-rank factor is: a feature map φ(x) ∈ R^r with W ≈ ΦΦᵀ, fitted to the rows.

A factor says everything about itself: which parameters it has, what it needs of the rows, how it is
fitted, what it takes of memory and time. A new one is a subclass in a file of its own and a line in
``biglp._graph.FACTORS``. The graph that a user gives is no factor: it has features, its rows, but
nothing is fitted (:mod:`.own`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from biglp._algebra.systems import MOST_LABELLED
from biglp._core.settings import GraphSettings
from biglp._core.size import EFFORTS, TORCH, Cost, Effort, Size
from biglp._files.runfolder import Checkpoint
from biglp._graph.features import FeatureMap
from biglp._graph.graph import TrainingRows
from biglp._graph.kernels import pair_seconds
from biglp._rows.prepared import (
    LEAST,
    MOST,
    NAMED_BYTES,
    SAMPLE_BYTES,
    SAMPLE_KEPT_BYTES,
    SAMPLE_ROWS,
)
from biglp._transforms.project import text_bytes

ROWS_PER_LANDMARK = 100
"""Rows a landmark in the sample that k-means works on; more does not help classification."""
SWEEP_ENTRY = 4e-9
"""Seconds of a row in the sums for each of its features, once these are made."""


def landmarks_for(effort: Effort, n_rows: int) -> int:
    """Landmarks of an anchor graph: a share of few rows, as many as are affordable of many."""
    least, most = effort.landmarks
    most = max(min(effort.landmark_pairs // n_rows, most), least)
    return min(max(min(n_rows // 2, effort.fine), n_rows // 10, 10), most)


def kept_rows(n_rows: int, row_bytes: float) -> int:
    """Rows of a sample that stay when the graph is made."""
    return min(n_rows, MOST, max(LEAST, int(SAMPLE_KEPT_BYTES // max(row_bytes, 1.0))))


class Factor(FeatureMap):
    """A low-rank factor of the similarity graph, fitted to the rows."""

    # The `factor_params` it knows; each is checked by `check(name, value)`.
    params: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}
    # Whether "auto" may scale the features: not where their values are what counts.
    scales_features: ClassVar[bool] = True
    n_landmarks_counts: ClassVar[bool] = True  # whether `n_landmarks` changes anything
    landmarks_by_effort: ClassVar[bool] = False  # whether `effort` says how many there are
    # Whether fitting it takes many sweeps over all rows. Its features stay with their blocks, so
    # that it is fitted again when a run is resumed.
    learnt: ClassVar[bool] = False
    # Whether a graph of several views is the mean of what this factor makes of each.
    takes_views: ClassVar[bool] = False
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
        if cls.learnt:  # the features of the training rows were lost with their process
            return cls.fit(rows, settings)
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
        # By default a share of the rows, within what is quick and what is useful.
        usual = max(min(n_rows // 10, 100), 50)
        if cls.landmarks_by_effort:
            usual = landmarks_for(EFFORTS[settings.effort], n_rows)
        return min(settings.n_landmarks or usual, n_rows)

    @classmethod
    def solving_bytes(cls, settings: GraphSettings, size: Size) -> int:
        """What sums and the system that is solved take: r × r numbers, and labelled rows."""
        learnt = min(size.n_labelled, MOST_LABELLED)
        return 8 * (8 * size.rank**2 + learnt * (4 * size.rank + 10 * size.n_classes))

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """What a graph with this factor takes."""
        sweep_cost, pair = cls.sweep_cost(size, settings.device), pair_seconds(size.width)
        rank, a_row, n_rows = size.rank, int(size.row_bytes), size.n_rows
        square = 8 * rank**2
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
        prepared = size.directions * size.dtype.itemsize or size.row_bytes  # behind the chain
        kept = int(kept_rows(n_rows, prepared) * prepared) + NAMED_BYTES
        sweep = SWEEP_ENTRY * n_rows * rank
        seconds = {} if cls.unit_degrees else {"degrees": sweep / 4}
        return sweep_cost._replace(
            libraries=TORCH if settings.device != "cpu" else {},
            fitting=fitting,
            fixed=cls.solving_bytes(settings, size) + kept,
            sums=square,
            stored_row=rank * size.dtype.itemsize,
            gpu=3 * square,
            seconds={**seconds, "Gram": sweep, "learning": rank / 4000, "labels": sweep / 4},
            seconds_row=rank * pair,
        )
