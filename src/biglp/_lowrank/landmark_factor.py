"""What factors on landmarks have in common: finding landmarks and bandwidth, and their cost."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from biglp._compiled import COMPILER_BYTES, LOOPS, can_run
from biglp._core.parameters import pair_seconds, positive
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._lowrank.base import ROWS_PER_LANDMARK, Factor
from biglp._lowrank.kernels import DEVICE_CELLS, check_bandwidth, check_bandwidth_factor
from biglp._lowrank.kmeans import start_rows
from biglp._lowrank.landmarks import (
    EVERY,
    FIRST_ITERATIONS,
    LAST_ITERATIONS,
    begins_with_few,
    choose_landmarks,
    compiles,
    landmark_spacing,
    most_iterations,
)
from biglp._lowrank.rows import TrainingRows

LLOYD_SHARE = 0.85
"""Share of the k-means iterations that is usually needed."""


class LandmarkFactor(Factor):
    """A factor that compares rows with k landmarks.

    Attributes
    ----------
    spacing_share : float
        The automatic bandwidth, as a multiple of the usual distance to the nearest landmarks.
    """

    params = {"bandwidth_factor": positive}  # noqa: RUF012  declared in the base
    spacing_share: ClassVar[float]
    landmarks: np.ndarray
    bandwidth: float

    @classmethod
    @abstractmethod
    def on(cls, landmarks: np.ndarray, bandwidth: float, settings: GraphSettings) -> Self:
        """Make the factor from its landmarks and bandwidth."""

    @classmethod
    def neighbours(cls, settings: GraphSettings) -> int:
        """Nearest landmarks whose distance tells the bandwidth."""
        return 1

    @classmethod
    @abstractmethod
    def compiles(cls, n_rows: int, n_features: int, k: int) -> bool:
        """Whether the compiled loops are worth loading for a fit of so many dense rows."""

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> Self:
        """Choose landmarks, then the bandwidth, and whether loops are compiled."""
        source = rows.source
        k = settings.n_landmarks or cls.rank_for(settings, source.n_rows, source.n_features)
        factor = cls._tuned(rows, choose_landmarks(rows, settings.landmarks, k), settings)
        if not source.is_sparse and source.device == "cpu":
            shape = (source.n_rows, source.n_features, len(factor.landmarks))
            # One process decides for all: the loops round differently from NumPy.
            factor.compiled = rows.engine.once(lambda: cls.compiles(*shape))
        return factor

    @classmethod
    def _tuned(cls, rows: TrainingRows, landmarks: np.ndarray, settings: GraphSettings) -> Self:
        if settings.bandwidth is not None:
            sigma = check_bandwidth(settings.bandwidth, rows.sample)
        else:
            share = settings.factor_params.get("bandwidth_factor", cls.spacing_share)
            spacing = landmark_spacing(rows.sample, landmarks, cls.neighbours(settings))
            sigma = share * spacing
            if "bandwidth_factor" in settings.factor_params:
                check_bandwidth_factor(share, sigma, rows.sample)
        return cls.on(landmarks, sigma, settings)

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """Also k-means, and on a device distances of some rows to all landmarks."""
        cost = super().cost(settings, size)
        rank, width = size.rank, size.width
        cells = min(DEVICE_CELLS, rank * size.n_rows)
        sampled = min(ROWS_PER_LANDMARK * rank, size.n_rows)
        in_sweeps = cls.compiles(size.n_rows, width, rank)
        seconds = dict(cost.seconds)
        if isinstance(settings.landmarks, str) and settings.landmarks != "random":
            on_sample = settings.landmarks == "kmeans"
            swept = sampled if on_sample else size.n_rows
            sweeps = LLOYD_SHARE * most_iterations(swept, rank)
            if on_sample and begins_with_few(swept, rank):
                sweeps = FIRST_ITERATIONS / EVERY + LAST_ITERATIONS
            searched = sweeps * swept + min(start_rows(width) * rank, sampled)
            seconds["k-means"] = searched * rank * pair_seconds(width)
        return cost._replace(
            libraries={
                **cost.libraries,
                LOOPS: COMPILER_BYTES * (in_sweeps or compiles(sampled, width, rank)),
            },
            gpu=cost.gpu + 4 * size.dtype.itemsize * cells,
            seconds=seconds,
        )

    def for_new_rows(self) -> Self:
        """The fit's loops, where they can run: a training row gets the features it had."""
        factor = copy(self)
        factor.compiled = self.compiled and can_run()
        return factor

    def state(self) -> dict[str, np.ndarray]:
        """Landmarks and bandwidth, and who makes the features."""
        state = {"landmarks": self.landmarks, "bandwidth": np.array(self.bandwidth)}
        return {**state, "compiled": np.array(True)} if self.compiled else state

    def describe(self) -> dict[str, Any]:
        """Landmarks, effective rank and bandwidth, and whether loops were compiled."""
        facts = {
            "factor": self.kind,
            "landmarks": len(self.landmarks),
            "rank": self.rank,
            "bandwidth": self.bandwidth,
        }
        return {**facts, "sweeps": "compiled"} if self.compiled else facts

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what another process makes for itself."""
        made = ("_search", "_gaussians")
        return {name: value for name, value in self.__dict__.items() if name not in made}
