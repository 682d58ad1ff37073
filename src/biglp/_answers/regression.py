"""From the sums over all rows to values: smoothing on the graph, ridge regression, their blend."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._answers.committee.decision import to_float64
from biglp._answers.committee.members import centre_and_spread
from biglp._answers.spreading import ALPHAS, spread
from biglp._core.arrays import to_dense, to_numpy
from biglp._engines import Engine
from biglp._fit.prepare import PreparedRows
from biglp._fit.settings import Settings
from biglp._labels.targets import Measurements
from biglp._lowrank.base import Factor
from biglp._lowrank.graph import labelled_features, part_of_labels
from biglp._lowrank.sampling import sample_rows
from biglp._propagate.closed_form import without_noise
from biglp._propagate.normalise import Normalisation
from biglp._propagate.regression import (
    MIN_HELD_OUT,
    RegressionDecision,
    blend,
    held_out_mean,
    held_out_values,
)
from biglp._propagate.ridge import fit_ridge
from biglp._propagate.sums import GramSums, apply_mixing
from biglp._propagate.systems import Graph, take_apart

DEFAULT_ALPHA = 0.9
MAX_LABELLED = 2000
"""Labelled rows that leave-one-out and ridge regression look at; the graph uses all."""
STANDARD_SAMPLE = 2000
"""Rows that tell the centre and the spread of each feature."""
MEMBERS = ("graph", "ridge", "mean")


def make_regression(
    engine: Engine,
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    labels: Measurements,
    settings: Settings,
    sums: GramSums,
    mixing: np.ndarray,
) -> tuple[RegressionDecision, dict[str, Any], int]:
    """Return the decision, what was chosen on the way, and the iterations of the solver."""
    spectrum = take_apart(sums, len(labels.rows))
    part = part_of_labels(labels, MAX_LABELLED, settings.seed)
    features = _features(engine, rows, factor, normalisation, part, mixing)
    alpha, by_graph, errors = _choose_alpha(spectrum, features, part, settings)
    sample = to_float64(to_numpy(sample_rows(rows.source, STANDARD_SAMPLE, settings.seed)))
    known = to_float64(to_numpy(rows.source.take(part.rows)))
    ridge = fit_ridge(known, part.values, part.weights, centre_and_spread(sample)[1])
    opinions = np.stack([by_graph, ridge.held_out, held_out_mean(part.values, part.weights)])
    shares = blend(opinions, part.values, part.weights)
    coefficients, n_iter = spread(spectrum, alpha, settings)
    unmixed = apply_mixing(coefficients.T, mixing.T).T
    decision = RegressionDecision(
        coefficients=without_noise(unmixed, sums, alpha),
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
        "spectral_radius": spectrum.radius,
    }
    return decision, report, n_iter


def _features(
    engine: Engine,
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    part: Measurements,
    mixing: np.ndarray,
) -> np.ndarray:
    """Mixed, normalised features of labelled rows."""
    if not factor.fresh_features:  # they are not a function of the row, but kept with its block
        return labelled_features(engine, rows.blocks, factor, normalisation, part.rows, mixing)
    # A handful of rows, wherever they are: not worth a sweep.
    features, _ = normalisation.apply(factor.features(rows.source.take(part.rows)))
    return apply_mixing(to_dense(features).astype(np.float64), mixing)


def _choose_alpha(
    spectrum: Graph, features: np.ndarray, part: Measurements, settings: Settings
) -> tuple[float, np.ndarray, list[dict[str, float]]]:
    """α of least leave-one-out error over all targets, what it says, and all candidates."""
    alphas = ALPHAS if settings.alpha is None else (settings.alpha,)
    if settings.alpha is None and len(part.rows) < MIN_HELD_OUT:
        alphas = (DEFAULT_ALPHA,)
    found = {a: held_out_values(spectrum, features, part.columns, a) for a in alphas}
    errors = [{"alpha": a, "error": _error(said, part).mean().item()} for a, said in found.items()]
    best = min(errors, key=lambda candidate: candidate["error"])["alpha"]
    return best, found[best], errors


def _error(said: np.ndarray, part: Measurements) -> np.ndarray:
    """Root of the mean squared error of each target, in units of its spread.  (q,)."""
    return np.sqrt(np.average((said - part.values) ** 2, axis=0, weights=part.weights))


def _report(opinions: np.ndarray, shares: np.ndarray, part: Measurements) -> dict[str, Any]:
    together = np.einsum("eq,elq->lq", shares, opinions)
    members = [
        {
            "member": name,
            "weight": share.tolist(),
            "error": (part.spread * _error(said, part)).tolist(),
        }
        for name, share, said in zip(MEMBERS, shares, opinions, strict=True)
    ]
    return {
        "members": members,
        "held_out_labels": len(part.rows),
        "held_out_error": (part.spread * _error(together, part)).tolist(),
        "trustworthy": len(part.rows) >= 30,
    }
