"""What factors on landmarks have in common: finding landmarks and bandwidth, and their cost."""

from __future__ import annotations

import time
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from biglp._core.jit import COMPILER_BYTES
from biglp._core.parameters import positive
from biglp._core.settings import GraphSettings
from biglp._core.shape import Shape
from biglp._lowrank.base import ROWS_PER_LANDMARK, Costs, Factor, Rehearsal
from biglp._lowrank.compiled import can_run
from biglp._lowrank.kernels import DEVICE_CELLS, check_bandwidth, check_bandwidth_factor
from biglp._lowrank.kmeans import assign_block, start_rows
from biglp._lowrank.landmarks import (
    EVERY,
    FIRST_ITERATIONS,
    LAST_ITERATIONS,
    SPACING_ROWS,
    begins_with_few,
    choose_landmarks,
    compiles,
    landmark_spacing,
    most_iterations,
)
from biglp._lowrank.rows import TrainingRows

LLOYD_SHARE = 0.85
"""Share of the k-means iterations that is usually needed."""
FEWEST_FOR_BANDWIDTH = 250
"""Rows that a rehearsal looks at to choose the bandwidth."""


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
    def costs(cls, settings: GraphSettings, shape: Shape) -> Costs:
        """On a device also distances of some rows to all landmarks, and what is made of them."""
        costs = super().costs(settings, shape)
        rank = cls.rank_for(settings, shape.n_rows, shape.n_features)
        cells = min(DEVICE_CELLS, rank * shape.n_rows)
        sampled = min(ROWS_PER_LANDMARK * rank, shape.n_rows)
        in_sweeps = cls.compiles(shape.n_rows, shape.width, rank)
        return replace(
            costs,
            device=costs.device + 4 * shape.dtype.itemsize * cells,
            loaded=COMPILER_BYTES * (in_sweeps or compiles(sampled, shape.width, rank)),
        )

    @classmethod
    def rehearse(
        cls, rehearsal: Rehearsal, settings: GraphSettings
    ) -> tuple[Factor, dict[str, float]]:
        """Fit to landmarks at hand, and time one iteration of choosing them."""
        rows, source = rehearsal.rows, rehearsal.rows.source
        k = min(cls.rank_for(settings, rehearsal.n_rows, source.n_features), source.n_rows)
        landmarks = choose_landmarks(rows, "random", k)
        drawn, part = rows.drawn, 1.0
        if drawn is not None and drawn.shape[0] > FEWEST_FOR_BANDWIDTH:
            n_rows = drawn.shape[0]
            drawn = drawn[:: n_rows // FEWEST_FOR_BANDWIDTH]
            part = drawn.shape[0] / min(n_rows, SPACING_ROWS)
        began = time.process_time()
        factor = cls._tuned(replace(rows, drawn=drawn), landmarks, settings)
        steps = {"bandwidth": (time.process_time() - began) / part}
        if settings.landmarks == "random":
            return factor, {**steps, "landmarks": k * rehearsal.fetch_seconds}
        return factor, {**steps, **cls._rehearsed_kmeans(rehearsal, landmarks, settings)}

    @classmethod
    def _rehearsed_kmeans(
        cls, rehearsal: Rehearsal, landmarks: np.ndarray, settings: GraphSettings
    ) -> dict[str, float]:
        """Processor time of k-means, from one search for the nearest landmarks."""
        rows, k = rehearsal.rows, len(landmarks)
        on_sample = settings.landmarks == "kmeans"
        sampled = min(ROWS_PER_LANDMARK * k, rehearsal.n_rows)
        swept = sampled if on_sample else rehearsal.n_rows
        dense = not rows.source.is_sparse and rows.source.device == "cpu"
        compiled = on_sample and dense and compiles(sampled, rows.source.n_features, k)
        search = partial(assign_block, centres=landmarks, compiled=compiled)
        began = time.process_time()
        if on_sample:  # the sums of many blocks are found as one and added up once
            for block in rows.blocks:
                search(block)
        else:
            rows.engine.sum_blocks(search, rows.blocks)
        a_row = (time.process_time() - began) / rows.n_swept
        sweeps = LLOYD_SHARE * most_iterations(swept, k)
        if on_sample and begins_with_few(swept, k):
            sweeps = FIRST_ITERATIONS / EVERY + LAST_ITERATIONS
        return {
            "k-means start": min(start_rows(rows.source.n_features) * k, sampled) * a_row
            + sampled * rehearsal.fetch_seconds,
            "k-means": sweeps * swept * a_row,
        }

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
