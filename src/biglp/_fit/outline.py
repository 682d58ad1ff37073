"""What a fit will do, and about how long each step takes, for a progress bar of the whole run.

Rough figures of one machine: what counts is their proportions, which differ from machine to machine
less than the figures do (:mod:`biglp._core.course`). ``biglp inspect`` measures instead.
"""

from __future__ import annotations

from biglp._core.settings import Settings
from biglp._lowrank import FACTORS
from biglp._sources import Source

SWEEP = 5e-9
"""Seconds of a sweep for each row and each feature of the graph."""
COMMITTEE = "committee"
MOST_LEARNT = 20_000
"""Labels that learning takes longer for."""
LEARNING_SWEEPS = 20
"""Sweeps that learn a factor."""
REPORT = {"report": 1.0}
"""Looking at the rows for a report."""


def expected_steps(source: Source, settings: Settings, n_labelled: int) -> dict[str, float]:
    """Steps of a fit in their order, and guesses of their seconds.

    Parameters
    ----------
    source : Source
    settings : Settings
    n_labelled : int
    """
    graph = settings.graph
    kind = FACTORS[graph.factor]
    if kind.pairwise:
        return {"graph": 0.5, "learning": 2.0, "labels": 0.2}
    rank = kind.rank_for(graph, source.n_rows, source.n_features)
    sweep = 0.05 + SWEEP * source.n_rows * rank
    learning = 0.2 + rank / 4000
    if settings.answer.method == COMMITTEE:
        learning = 1.0 + rank / 1000 + min(n_labelled, MOST_LEARNT) / 1000
    found: dict[str, float] = {}
    if kind.learnt:
        found["GLNP"] = LEARNING_SWEEPS * sweep
    elif kind.n_landmarks_counts and isinstance(graph.landmarks, str):
        found["k-means"] = 0.5 + rank / 2000
    if not kind.unit_degrees:
        found["degrees"] = sweep
    return found | {"Gram": sweep, "learning": learning, "labels": 0.8 * sweep}
