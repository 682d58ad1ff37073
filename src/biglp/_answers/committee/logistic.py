"""Logistic regression on the labelled rows, well regularised.

With l labels of weights w_i, the slopes S and intercepts b minimise

    Σ_i −w_i·log p(y_i | x_i·S + b) / Σ_i w_i + ‖S‖² / (2·C·Σ_i w_i),

as scikit-learn's LogisticRegression does with the same method, which starts from zero and comes to
the same numbers; without its checks, which take most of the time of a few dozen labels, and without
loading it. What it says of held-out rows comes from a few folds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from biglp._answers.committee.member import Evidence, LinearOpinion, Member, MemberFit
from biglp._answers.standard import Standard, to_float64
from biglp._core.arrays import Rows

FOLDS = 5
STRENGTH = 0.1
"""C above: hundreds of features and tens of labels are usual."""
ITERATIONS, TOLERANCE = 200, 1e-3
LEAST_GAIN = 64 * float(np.finfo(np.float64).eps)


class LogisticMember(Member):
    """Logistic regression."""

    name = "logistic"
    starts = {  # noqa: RUF012  declared in the base
        "table": (0.12, 0.2),
        "clusters": (0.2, 0.05),
        "pixels": (0.0, 0.55),
        "text": (0.0, 0.05),
        "embedding": (0.0, 0.35),
    }
    says_shares = True
    opinion = LinearOpinion

    def learn(self, evidence: Evidence) -> MemberFit:
        """Fit to all labelled rows, and to folds of them."""
        rows, n_classes = to_float64(evidence.rows), len(evidence.log_prior)
        codes, given = evidence.labelled.codes, evidence.labelled.given
        standard = evidence.standard
        opinion = fit_logistic(rows, codes, n_classes, standard, given)
        seed = evidence.problem.settings.seed
        held_out = held_out_by_logistic(rows, codes, n_classes, standard, seed, given)
        return MemberFit(opinion, held_out, opinion.of(evidence.sample_rows))


def fit_logistic(
    rows: Rows,
    codes: np.ndarray,
    n_classes: int,
    standard: Standard,
    given: np.ndarray | None = None,
) -> LinearOpinion:
    """Fit logistic regression to labelled rows; classes without a row get a low logit.

    ``standard`` is the centre and spread of the features over all rows: a handful of labelled rows
    does not know them. ``given`` is w·Y of the rows, where labels have weights or are
    distributions.
    """
    centre, spread = standard
    scaled = (
        rows @ sparse.diags(1.0 / spread) if sparse.issparse(rows) else (rows - centre) / spread
    )
    targets = np.eye(n_classes)[codes] if given is None else given
    seen = np.flatnonzero(targets.any(axis=0))
    slopes, intercepts = minimise_loss(scaled, targets[:, seen])
    slopes = slopes / spread[:, None]
    intercepts = intercepts - centre @ slopes
    if len(seen) == n_classes:
        return LinearOpinion(slopes, intercepts)
    every = np.zeros((slopes.shape[0], n_classes))
    every[:, seen] = slopes
    levels = np.full(n_classes, intercepts.min() - 2.0)
    levels[seen] = intercepts
    return LinearOpinion(every, levels)


def minimise_loss(rows: Rows, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercepts of least regularised loss.  (m, c) and (c,).

    ``targets`` (l, c) is w·Y. Two classes have one logit, half of it for the second and minus half
    for the first.
    """
    from scipy.optimize import minimize  # slow to load, and scoring new rows does without

    two = targets.shape[1] == 2
    sizes = targets.sum(axis=1, keepdims=True)
    total = float(sizes.sum())
    penalty = 1.0 / (STRENGTH * total)
    width = 1 if two else targets.shape[1]

    def loss(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        coefficients = unknown.reshape(-1, width)
        slopes = coefficients[:-1]
        logits = rows @ slopes + coefficients[-1]
        if two:
            logits = np.hstack([np.zeros_like(logits), logits])
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(axis=1, keepdims=True)
        value = float((sizes * np.log(sums)).sum() - (targets * logits).sum()) / total
        excess = (shares * (sizes / sums) - targets)[:, -width:] / total
        gradient = np.empty_like(coefficients)
        gradient[:-1] = rows.T @ excess
        gradient[:-1] += penalty * slopes
        gradient[-1] = excess.sum(axis=0)
        return value + 0.5 * penalty * float((slopes**2).sum()), gradient.ravel()

    found = minimize(
        loss,
        np.zeros((rows.shape[1] + 1) * width),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": ITERATIONS, "maxls": 50, "gtol": TOLERANCE, "ftol": LEAST_GAIN},
    )
    coefficients = found.x.reshape(-1, width)
    if two:
        coefficients = np.hstack([-coefficients / 2, coefficients / 2])
    return coefficients[:-1], coefficients[-1]


def held_out_by_logistic(
    rows: Rows,
    codes: np.ndarray,
    n_classes: int,
    standard: Standard,
    seed: int,
    given: np.ndarray | None = None,
) -> np.ndarray:
    """Logits of each labelled row from fits that did not see it; NaN for single rows of a class."""
    logits = np.full((len(codes), n_classes), np.nan)
    for seen, left in folds(codes, seed):
        part = None if given is None else given[seen]
        model = fit_logistic(rows[seen], codes[seen], n_classes, standard, part)
        logits[left] = model.of(rows[left])
    return logits


def folds(codes: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Labelled rows to learn from and rows to be asked about, a few times.

    Every row is asked about once, but for single rows of a class, which are always learnt from.
    """
    counts = np.bincount(codes)
    several = counts[codes] >= 2
    if not several.any():
        return
    places, alone = np.flatnonzero(several), np.flatnonzero(~several)
    n_folds = int(min(FOLDS, counts[counts >= 2].min()))
    fold = _stratified(codes[places], n_folds, seed)
    for number in range(n_folds):
        seen = np.concatenate([places[fold != number], alone])
        if len(np.unique(codes[seen])) >= 2:
            yield seen, places[fold == number]


def _stratified(codes: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The fold of each label: those of scikit-learn's StratifiedKFold, shuffled.

    The labels of a class are dealt out in turn, and the next class goes on where it stopped.
    """
    shuffle = np.random.RandomState(seed % 2**32).shuffle
    found, dealt = np.empty(len(codes), dtype=np.int64), 0
    seen, first = np.unique(codes, return_index=True)
    for code in seen[np.argsort(first)].tolist():
        own = np.flatnonzero(codes == code)
        turns = np.sort((dealt + np.arange(len(own))) % n_folds)
        shuffle(turns)
        found[own] = turns
        dealt += len(own)
    return found
