"""Forming the committee from what the sweeps found and the labelled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._answers.committee.decision import CommitteeDecision, graph_logits, to_float64
from biglp._answers.committee.forest import Forest, grow_forest
from biglp._answers.committee.means import fit_class_means
from biglp._answers.committee.members import (
    ALPHAS,
    LinearModel,
    Member,
    centre_and_spread,
    density_coefficients,
    fit_logistic,
    held_out_by_graph,
    held_out_by_logistic,
)
from biglp._answers.committee.nearest import Nearest
from biglp._answers.committee.weights import Weights, weigh
from biglp._core.arrays import Rows
from biglp._propagate.leave_one_out import LabelledRows
from biglp._propagate.sums import apply_mixing
from biglp._propagate.systems import Graph

Coefficients = Callable[[float], np.ndarray]
"""Label spreading at α: coefficients C of shape (r, c)."""
MIN_TREE_LABELS = 30
"""Labels below which trees have nothing to add."""
MAX_TREE_ROWS = 1_000_000
"""Rows above which asking the trees would take longer than all the sweeps."""
MAX_TREE_FEATURES = 1000
"""Features above which rows, which trees want dense, would take much memory."""
LEAST_WEIGHTS = {"class means": 0.02, "forest": 0.02, "nearest labels": 0.2}
"""Weights below which members are not worth the time they would take of every row, most of it the
search for the nearest labels; the others always stay."""
TRUSTED_LABELS = 30
"""Held-out labels from which on their accuracy means something."""


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
    one_scale : bool
        Whether the rows' features share one scale, as principal components do.
    voters : Nearest, optional
        Labelled rows that may vote on their neighbours, where there are enough of them.
    own_voter : ndarray of shape (l,), optional
        Which of the voters each of the labelled rows is itself; -1: none.
    """

    labelled: LabelledRows
    labelled_rows: Rows
    sample_features: Rows
    sample_rows: Rows
    log_prior: np.ndarray
    one_scale: bool = False
    voters: Nearest | None = None
    own_voter: np.ndarray | None = None

    @property
    def targets(self) -> np.ndarray:
        """w·Y of the labelled rows.  (l, c)."""
        return self.labelled.targets(len(self.log_prior))


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
    codes, given = evidence.labelled.codes, evidence.labelled.given
    graph, columns = [], []
    for value in alphas:
        density = density_coefficients(spectrum, coefficients(value), value)
        columns.append(apply_mixing(density.T, mixing.T).T)
        said = graph_logits(np.asarray(evidence.sample_features @ columns[-1]))
        held_out = held_out_by_graph(spectrum, evidence.labelled, value)
        graph.append(Member(f"spread {value:g}", held_out, said))
    supervised, models = _supervised(evidence, spectrum.sums.n_rows, seed)
    weighed = weigh([*graph, *supervised], evidence.log_prior, codes, given)
    heard = [
        member
        for member, weight in zip(supervised, weighed.weights[len(graph) :], strict=False)
        if weight >= LEAST_WEIGHTS.get(member.name, 0.0)
    ]
    if len(heard) < len(supervised):
        weighed = weigh([*graph, *heard], evidence.log_prior, codes, given)
    kept = {member.name: models[member.name] for member in heard}
    linear = [model for model in kept.values() if isinstance(model, LinearModel)]
    decision = CommitteeDecision(
        coefficients=np.hstack(columns),
        slopes=np.hstack([model.slopes for model in linear]),
        intercepts=np.hstack([model.intercepts for model in linear]),
        scales=weighed.scales,
        weights=weighed.weights[:-1],
        bias=weighed.weights[-1] * evidence.log_prior,
        forest=kept.get("forest"),
        nearest=kept.get("nearest labels"),
    )
    without_graph = weigh(supervised, evidence.log_prior, codes, given)
    return decision, _report(weighed, without_graph)


def _supervised(evidence: Evidence, n_rows: int, seed: int) -> tuple[list[Member], dict[str, Any]]:
    """Members that learn from the labelled rows alone, and their models by name."""
    codes, n_classes = evidence.labelled.codes, len(evidence.log_prior)
    logistic, member = _logistic(evidence, codes, n_classes, seed)
    members, models = [member], {"logistic": logistic}
    means, member = _class_means(evidence)
    members.append(member)
    models["class means"] = means
    if _asks_trees(evidence, n_rows):
        forest, member = _forest(evidence, codes, n_classes, seed)
        members.append(member)
        models["forest"] = forest
    if evidence.voters is not None:
        members.append(_nearest(evidence, evidence.voters))
        models["nearest labels"] = evidence.voters
    return members, models


def _asks_trees(evidence: Evidence, n_rows: int) -> bool:
    # Thresholds on principal components say little that distances do not: without them MNIST and
    # Fashion-MNIST gain or lose less than 0.3 points at 30 to 11,401 labels, and a quarter of the
    # time of a fit.
    return not evidence.one_scale and (
        len(evidence.labelled.codes) >= MIN_TREE_LABELS
        and n_rows <= MAX_TREE_ROWS
        and evidence.labelled_rows.shape[1] <= MAX_TREE_FEATURES
    )


def _logistic(evidence: Evidence, codes: np.ndarray, n_classes: int, seed: int) -> Any:
    standard = centre_and_spread(to_float64(evidence.sample_rows), one_scale=evidence.one_scale)
    rows = to_float64(evidence.labelled_rows)
    given = evidence.labelled.given
    model = fit_logistic(rows, codes, n_classes, standard, given)
    held_out = held_out_by_logistic(rows, codes, n_classes, standard, seed, given)
    return model, Member("logistic", held_out, model.logits(evidence.sample_rows))


def _class_means(evidence: Evidence) -> tuple[LinearModel, Member]:
    standard = centre_and_spread(to_float64(evidence.sample_rows))
    rows = to_float64(evidence.labelled_rows)
    model, held_out = fit_class_means(rows, evidence.targets, standard)
    return model, Member("class means", held_out, model.logits(evidence.sample_rows))


def _nearest(evidence: Evidence, voters: Nearest) -> Member:
    held_out = voters.logits(evidence.labelled_rows, evidence.own_voter)
    counts = np.bincount(evidence.labelled.codes, minlength=held_out.shape[1])
    held_out[counts[evidence.labelled.codes] < 2] = np.nan
    return Member("nearest labels", held_out, voters.logits(evidence.sample_rows))


def _forest(
    evidence: Evidence, codes: np.ndarray, n_classes: int, seed: int
) -> tuple[Forest, Member]:
    given = evidence.labelled.given
    weights = None if given is None else given.sum(axis=1)
    rows = evidence.labelled_rows
    rows = rows.toarray() if sparse.issparse(rows) else rows
    forest, held_out = grow_forest(rows, codes, n_classes, seed, weights)
    held_out[np.bincount(codes, minlength=n_classes)[codes] < 2] = np.nan
    return forest, Member("forest", held_out, forest.logits(evidence.sample_rows))


def _report(weighed: Weights, without_graph: Weights) -> dict[str, Any]:
    weights = {str(item["member"]): float(item["weight"] or 0.0) for item in weighed.report}
    graph = sum(weight for name, weight in weights.items() if name.startswith("spread"))
    everything = sum(weights.values())
    trustworthy = weighed.n_held_out >= TRUSTED_LABELS
    helped = None
    if trustworthy and weighed.accuracy is not None and without_graph.accuracy is not None:
        helped = weighed.accuracy > without_graph.accuracy
    return {
        "members": weighed.report,
        "prior_weight": float(weighed.weights[-1]),
        "held_out_labels": weighed.n_held_out,
        "held_out_accuracy": weighed.accuracy,
        "supervised_accuracy": without_graph.accuracy,
        "unlabelled_rows_helped": helped,
        "graph_share": graph / everything if everything > 0 else 0.0,
        "trustworthy": trustworthy,
    }
