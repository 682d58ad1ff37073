"""Regression: smoothing on the graph, ridge regression, and their blend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    to_float64,
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
        graph, labels = problem.graph, problem.labels
        part = part_of_labels(labels, MOST_LABELLED, problem.settings.seed)
        features = to_dense(problem.views[0].mixed_features(part.rows))
        alpha, by_graph, errors = _choose_alpha(problem, features, part)
        sample = to_float64(to_numpy(problem.sample_rows))
        known = to_float64(to_numpy(graph.take(part.rows)))
        ridge = fit_ridge(known, part.values, part.weights, centre_and_spread(sample)[1])
        opinions = np.stack([by_graph, ridge.held_out, held_out_mean(part.values, part.weights)])
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
        report = {
            "alpha": alpha,
            "candidates": errors,
            **_report(opinions, shares, part),
            "spectral_radius": problem.system.radius,
        }
        return LearnResult(answer, report, n_iter)


def _choose_alpha(
    problem: Problem[Targets], features: np.ndarray, part: Targets
) -> tuple[float, np.ndarray, list[dict[str, float]]]:
    """α of least leave-one-out error over all targets, what it says, and all candidates."""
    given = problem.settings.alpha
    alphas = ALPHAS if given is None else (given,)
    if given is None and len(part.rows) < MIN_HELD_OUT:
        alphas = (DEFAULT_ALPHA,)
    held_out = {a: held_out_values(problem.system, features, part.columns, a) for a in alphas}
    errors = [
        {"alpha": a, "error": _error(predicted, part).mean().item()}
        for a, predicted in held_out.items()
    ]
    best = min(errors, key=lambda candidate: candidate["error"])["alpha"]
    return best, held_out[best], errors


def _error(predicted: np.ndarray, part: Targets) -> np.ndarray:
    """Root of the mean squared error of each target, in units of its spread.  (q,)."""
    return np.sqrt(np.average((predicted - part.values) ** 2, axis=0, weights=part.weights))


def _report(opinions: np.ndarray, shares: np.ndarray, part: Targets) -> dict[str, Any]:
    together = np.einsum("eq,elq->lq", shares, opinions)
    members = [
        {
            "member": name,
            "weight": share.tolist(),
            "error": (part.spread * _error(predicted, part)).tolist(),
        }
        for name, share, predicted in zip(MEMBERS, shares, opinions, strict=True)
    ]
    return {
        "members": members,
        "held_out_labels": len(part.rows),
        "held_out_error": (part.spread * _error(together, part)).tolist(),
        "trustworthy": len(part.rows) >= 30,
    }
