"""From the sums over all rows to a decision: pure label spreading, or the committee."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from biglp._answers.committee.decision import CommitteeDecision
from biglp._answers.committee.forming import Evidence, form_committee
from biglp._answers.committee.nearest import Nearest, count_voters, voters
from biglp._answers.poisson import decide_by_poisson
from biglp._answers.spreading import MAX_LABELLED, choose, decide, spread, wants_leave_one_out
from biglp._answers.spreading_answer import Decision
from biglp._core.arrays import Rows, to_numpy
from biglp._engines import Engine
from biglp._fit.prepare import PreparedRows
from biglp._fit.settings import Settings
from biglp._labels.labels import Labels
from biglp._lowrank.base import Factor
from biglp._lowrank.graph import (
    float64_features,
    labelled_features,
    labelled_rows,
    part_of_labels,
)
from biglp._lowrank.sampling import sample_indices, sample_rows
from biglp._propagate.class_balance import given_prior, power_prior
from biglp._propagate.class_shares import share_offsets, with_class_shares
from biglp._propagate.leave_one_out import LabelledRows
from biglp._propagate.normalise import Normalisation
from biglp._propagate.poisson import constant_mode, mean_label
from biglp._propagate.sums import GramSums, apply_mixing
from biglp._propagate.systems import (
    MOST_LABELLED,
    Graph,
    SparseSystem,
    Spectrum,
    take_apart,
)

IMAGINED_LABELS = 5.0
"""Labels of each class that are thought to be there as well when the shares of the classes are
guessed from their labels: a dozen labels say little of them."""
COMMITTEE_SAMPLE = 2000
"""Rows that tell the usual size of each member's logits."""
LEAST_CHANCE = 1e-30
SHARE_SAMPLE = 10_000
"""Rows that tell where the thresholds of the classes are, for ``class_balance="share"``."""


def make_decision(
    engine: Engine,
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    labels: Labels,
    settings: Settings,
    sums: GramSums,
    mixing: np.ndarray,
) -> tuple[Decision | CommitteeDecision, dict[str, Any], int]:
    """Return the decision, what was chosen on the way, and the iterations of the solver."""
    poisson = settings.filter == "poisson"
    spectrum = take_apart(sums, None if poisson else len(labels.rows))
    if settings.committee:
        return _committee(rows, factor, normalisation, labels, settings, spectrum, mixing)
    labelled = None
    if wants_leave_one_out(labels, settings):
        part = part_of_labels(labels, _most_labelled(spectrum), settings.seed)
        labelled = labelled_rows(engine, rows.blocks, factor, normalisation, part, mixing)
    if poisson and isinstance(spectrum, Spectrum):
        mode = constant_mode(spectrum, normalisation.column_sums)
        decision, chosen = decide_by_poisson(spectrum, mode, labels, labelled, settings, mixing)
        n_iter = 1
    else:
        choice = choose(spectrum, labels, labelled, settings)
        decision, n_iter = decide(spectrum, labels, choice, settings, mixing)
        chosen = choice.describe()
    if _wants_shares(settings):
        sums_of_columns = normalisation.column_sums
        mode = spectrum.sums.totals if sums_of_columns is None else sums_of_columns
        constant = apply_mixing(mode, mixing.T)
        wanted = np.column_stack([decision.coefficients, constant])
        found = _of_sample(engine, rows, factor, normalisation, wanted, settings.seed)
        decision = with_class_shares(
            decision, found[:, :-1], found[:, -1], constant, mean_label(labels.counts)
        )
    return decision, {**chosen, "spectral_radius": spectrum.radius}, n_iter


def _of_sample(
    engine: Engine,
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    matrix: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Normalised features of a random sample of rows, times a matrix.  (p, q) → (b, q)."""
    if not factor.fresh_features:  # they are not a function of the row, but kept with its block
        chosen = sample_indices(rows.source.n_rows, SHARE_SAMPLE, seed)
        found = labelled_features(engine, rows.blocks, factor, normalisation, chosen, matrix)
        return np.asarray(found)
    sample = sample_rows(rows.source, SHARE_SAMPLE, seed)
    parts = []
    for start in range(0, sample.shape[0], COMMITTEE_SAMPLE):
        features = factor.features(sample[start : start + COMMITTEE_SAMPLE])
        parts.append(float64_features(normalisation.apply(features)[0]) @ matrix)
    return np.concatenate(parts)


def _committee(
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    labels: Labels,
    settings: Settings,
    spectrum: Graph,
    mixing: np.ndarray,
) -> tuple[CommitteeDecision, dict[str, Any], int]:
    part = part_of_labels(labels, _most_labelled(spectrum), settings.seed)
    # A handful of rows, wherever they are: not worth a sweep.
    known = rows.source.take(part.rows)
    features, _ = normalisation.apply(factor.features(known))
    sample = sample_rows(rows.source, COMMITTEE_SAMPLE, settings.seed)
    sample_features, _ = normalisation.apply(factor.features(sample))
    n_iter = 1

    def coefficients(alpha: float) -> np.ndarray:
        nonlocal n_iter
        found, steps = spread(spectrum, alpha, settings)
        n_iter = max(n_iter, steps)
        return found

    known_features = apply_mixing(float64_features(features), mixing)
    voting, own = _voters(rows, labels, part, known, settings.seed)
    evidence = Evidence(
        LabelledRows(known_features, part.codes, part.given),
        to_numpy(known),
        to_numpy(sample_features),
        to_numpy(sample),
        _log_prior(labels, settings),
        one_scale=rows.source.scaling.projection is not None,
        voters=voting,
        own_voter=own,
    )
    decision, report = form_committee(
        spectrum, coefficients, mixing, evidence, alpha=settings.alpha, seed=settings.seed
    )
    if _wants_shares(settings):
        said, _ = decision.probabilities(sample_features, None, sample)
        logs = np.log(np.maximum(to_numpy(said), LEAST_CHANCE))
        offsets = share_offsets(logs.astype(np.float64), mean_label(labels.counts))
        decision = replace(decision, bias=decision.bias - offsets)
    return decision, {**report, "spectral_radius": spectrum.radius}, n_iter


def _wants_shares(settings: Settings) -> bool:
    return isinstance(settings.class_balance, str) and settings.class_balance == "share"


def _voters(
    rows: PreparedRows, labels: Labels, part: Labels, known: Rows, seed: int
) -> tuple[Nearest | None, np.ndarray | None]:
    """Labelled rows that may vote, more than the members learn from; and which is which of these.

    ``known`` are the rows of ``part``, which need not be read again where they are all.
    """
    count = count_voters(len(labels.rows), labels.n_rows, rows.source.n_features)
    if count == 0:
        return None, None
    chosen = part_of_labels(labels, count, seed)
    same = len(chosen.rows) == len(part.rows) == len(labels.rows)
    taken = known if same else rows.source.take(chosen.rows)
    votes = chosen.one_hot(chosen.codes) if chosen.given is None else chosen.given
    place = np.minimum(np.searchsorted(chosen.rows, part.rows), len(chosen.rows) - 1)
    own = np.where(chosen.rows[place] == part.rows, place, -1)
    return voters(to_numpy(taken), votes), own


def _most_labelled(spectrum: Graph) -> int:
    return MOST_LABELLED if isinstance(spectrum, SparseSystem) else MAX_LABELLED


def _log_prior(labels: Labels, settings: Settings) -> np.ndarray:
    """Logarithm of the class prior, centred; zero where classes are to be equally likely."""
    if not isinstance(settings.class_balance, str):
        prior = given_prior(settings.class_balance, labels.n_classes)
    else:
        equal = settings.class_balance in ("mass", "centre")
        prior = power_prior(labels.counts + IMAGINED_LABELS, 0.0 if equal else 1.0)
    logs = np.log(prior)
    return np.asarray(logs - logs.mean())
