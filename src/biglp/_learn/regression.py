"""Regression: smoothing on the graph, ridge regression, and their blend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biglp._algebra.ridge import (
    FLOOR,
    MIN_HELD_OUT,
    blend,
    fit_ridge,
    held_out_mean,
    held_out_values,
    smoothed,
)
from biglp._algebra.spreading import without_noise
from biglp._core.arrays import Array, Rows, is_torch, like, to_dense, to_numpy
from biglp._core.settings import AnswerSettings
from biglp._labels.labels import OwnLabels
from biglp._labels.targets import Targets
from biglp._learn.base import (
    LearnResult,
    Method,
    Predictor,
    Problem,
    centre_and_spread,
    part_of_labels,
)
from biglp._learn.spreading import ALPHAS

DEFAULT_ALPHA = 0.9
MOST_LABELLED = 2000
"""Labelled rows that leave-one-out and ridge regression look at; the graph uses all."""
MEMBERS = ("graph", "ridge", "mean")


@dataclass(frozen=True)
class RegressionPredictor(Predictor):
    """Values of any rows."""

    # (p, q + 1): features times this are the sums of labels and, last, of their weights
    coefficients: np.ndarray
    # (m, q) and (q,): ridge regression on the prepared rows, in units of the spread
    slopes: np.ndarray
    intercepts: np.ndarray
    limits: np.ndarray  # (2, q): least and largest label; a mean of labels is between them
    # (2, q): weights of the graph and of ridge regression; the rest is the mean's
    weights: np.ndarray
    # (q,): mean and spread of the labels
    mean: np.ndarray
    spread: np.ndarray

    kind = "regression"

    def __post_init__(self) -> None:
        """Rows are needed where ridge regression has a weight."""
        object.__setattr__(self, "needs_rows", bool(self.weights[1].any()))

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """Values of a block of rows in units of the spread, around the mean: see :meth:`finish`."""
        sums = features @ like(features, self.coefficients)
        unreached = ~(sums[:, -1] > FLOOR)
        values = smoothed(sums, like(sums, self.limits)) * like(sums, self.weights[0])
        if self.needs_rows:
            straight = rows @ like(rows, self.slopes) + like(sums, self.intercepts)
            values += straight * like(sums, self.weights[1])
        return values, int(unreached.sum())

    def finish(self, outputs: Array) -> Array:
        """Bring values back to the units of the labels, in float64."""
        if is_torch(outputs):
            outputs = outputs.double()
            return like(outputs, self.mean) + like(outputs, self.spread) * outputs
        return np.asarray(self.mean + self.spread * outputs.astype(np.float64))

    def count(self, answers: Array) -> dict[int, int]:
        """Count nothing: there are no classes."""
        return {}


class RegressionMethod(Method):
    """The blend of smoothing and ridge regression that leave-one-out likes best."""

    unreached = (
        "their values come from ridge regression and the mean of the labels. Label some of them, "
        "or rows near them."
    )

    @classmethod
    def check(cls, labels: Targets, settings: AnswerSettings, rank: int) -> None:
        """Nothing can be wrong: there are no classes."""

    @classmethod
    def learn(cls, problem: Problem[Targets]) -> LearnResult:
        """Choose α and the blend."""
        settings, labels, system = problem.settings, problem.labels, problem.system
        part = part_of_labels(labels, MOST_LABELLED, settings.seed)
        features = to_dense(problem.views[0].mixed_features(part.rows))
        # α of least leave-one-out error over all targets.
        alphas = ALPHAS if settings.alpha is None else (settings.alpha,)
        if settings.alpha is None and len(part.rows) < MIN_HELD_OUT:
            alphas = (DEFAULT_ALPHA,)
        by_graph = {a: held_out_values(system, features, part.columns, a) for a in alphas}
        candidates = [
            {"alpha": a, "error": _error(values, part).mean().item()}
            for a, values in by_graph.items()
        ]
        alpha = min(candidates, key=lambda candidate: candidate["error"])["alpha"]
        sample, known = (
            to_numpy(rows).astype(np.float64, copy=False)
            for rows in (problem.sample_rows, problem.graph.take(part.rows))
        )
        ridge = fit_ridge(known, part.values, part.weights, centre_and_spread(sample)[1])
        mean = held_out_mean(part.values, part.weights)
        opinions = np.stack([by_graph[alpha], ridge.held_out, mean])
        shares = blend(opinions, part.values, part.weights)
        coefficients, n_iter = problem.spread(alpha)
        answer = RegressionPredictor(
            coefficients=without_noise(problem.sums.unmix(coefficients), problem.sums, alpha),
            slopes=ridge.slopes,
            intercepts=ridge.intercepts,
            limits=np.stack([labels.values.min(axis=0), labels.values.max(axis=0)]),
            weights=shares[:2],
            mean=labels.mean,
            spread=labels.spread,
        )
        together = np.einsum("eq,elq->lq", shares, opinions)
        # In the units of the labels.
        errors = [(part.spread * _error(said, part)).tolist() for said in (*opinions, together)]
        report = {
            "alpha": alpha,
            "candidates": candidates,
            "members": [
                {"member": name, "weight": share.tolist(), "error": error}
                for name, share, error in zip(MEMBERS, shares, errors, strict=False)
            ],
            "held_out_labels": len(part.rows),
            "held_out_error": errors[-1],
            "trustworthy": len(part.rows) >= 30,
            "spectral_radius": system.radius,
        }
        return LearnResult(answer, report, n_iter)


def _error(predicted: np.ndarray, part: Targets) -> np.ndarray:
    """Root of the mean squared error of each target, in units of its spread.  (q,)."""
    return np.sqrt(np.average((predicted - part.values) ** 2, axis=0, weights=part.weights))
