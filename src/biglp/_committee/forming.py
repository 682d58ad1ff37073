"""Forming the committee from what the sweeps found and the labelled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._arrays import Rows
from biglp._committee.decision import CommitteeDecision, graph_logits, to_float64
from biglp._committee.members import (
    ALPHAS,
    Member,
    centre_and_spread,
    density_coefficients,
    fit_logistic,
    held_out_by_graph,
    held_out_by_logistic,
)
from biglp._committee.weights import Weights, weigh
from biglp._propagate.leave_one_out import LabelledRows
from biglp._propagate.spectrum import Graph
from biglp._propagate.statistics import apply_mixing

Coefficients = Callable[[float], np.ndarray]
"""Label spreading at α: coefficients C of shape (r, c)."""


@dataclass(frozen=True)
class Evidence:
    """What the members learn from besides the spectrum of the graph.

    Attributes
    ----------
    labelled : LabelledRows
        Mixed, normalised features of the labelled rows.
    labelled_rows : array or CSR matrix of shape (l, m)
        The same rows as they are.
    sample_features, sample_rows
        The same for a random sample of all rows; features before mixing.
    log_prior : ndarray of shape (c,)
        Logarithm of the class prior, centred.
    """

    labelled: LabelledRows
    labelled_rows: Rows
    sample_features: Rows
    sample_rows: Rows
    log_prior: np.ndarray


def form_committee(
    spectrum: Graph,
    coefficients: Coefficients,
    mixing: np.ndarray,
    evidence: Evidence,
    *,
    alpha: float | None,
    seed: int,
) -> tuple[CommitteeDecision, dict[str, Any]]:
    """Ask the members, weigh them, and return the decision with a report.

    Parameters
    ----------
    spectrum : Graph
        The graph.
    coefficients : callable
        Label spreading at α.
    mixing : ndarray
        From a row's features to those of the spectrum.
    evidence : Evidence
    alpha : float, optional
        The only α to ask, when the user has given one.
    seed : int
    """
    alphas = ALPHAS if alpha is None else (alpha,)
    codes = evidence.labelled.codes
    members, columns = [], []
    for value in alphas:
        density = density_coefficients(spectrum, coefficients(value), value)
        columns.append(apply_mixing(density.T, mixing.T).T)
        said = graph_logits(np.asarray(evidence.sample_features @ columns[-1]))
        held_out = held_out_by_graph(spectrum, evidence.labelled, value)
        members.append(Member(f"spread {value:g}", held_out, said))
    logistic, member = _logistic(evidence, codes, len(evidence.log_prior), seed)
    members.append(member)
    weighed = weigh(members, evidence.log_prior, codes)
    decision = CommitteeDecision(
        coefficients=np.hstack(columns),
        slopes=logistic.slopes,
        intercepts=logistic.intercepts,
        scales=weighed.scales,
        weights=weighed.weights[:-1],
        bias=weighed.weights[-1] * evidence.log_prior,
    )
    return decision, _report(weighed)


def _logistic(evidence: Evidence, codes: np.ndarray, n_classes: int, seed: int) -> Any:
    standard = centre_and_spread(to_float64(evidence.sample_rows))
    rows = to_float64(evidence.labelled_rows)
    model = fit_logistic(rows, codes, n_classes, standard)
    held_out = held_out_by_logistic(rows, codes, n_classes, standard, seed)
    return model, Member("logistic", held_out, model.logits(evidence.sample_rows))


def _report(weighed: Weights) -> dict[str, Any]:
    graph = [item for item in weighed.report if str(item["member"]).startswith("spread")]
    logistic = weighed.report[-1]
    said = float(sum(float(item["weight"] or 0.0) for item in graph))
    everything = said + float(logistic["weight"] or 0.0)
    return {
        "members": weighed.report,
        "prior_weight": float(weighed.weights[-1]),
        "held_out_labels": weighed.n_held_out,
        "held_out_accuracy": weighed.accuracy,
        "graph_share": said / everything if everything > 0 else 0.0,
        "trustworthy": weighed.n_held_out >= 30,
    }
