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
from scipy.special import logsumexp

from biglp._core.arrays import Rows
from biglp._learn.base import Standard
from biglp._learn.committee.member import LinearModel, Member, MemberFit, TrainingSet

FOLDS = 5
STRENGTH = 0.1
"""C above: hundreds of features and tens of labels are usual."""
ITERATIONS, TOLERANCE = 200, 1e-3
WEAKER, LEAST_BETTER, ENOUGH = (1.0, 10.0, 100.0), 2.0, 15
"""Weaker pulls, tried in this order while each lowers the log-loss of all held-out labels together
by so much; with fewer labels a class than ENOUGH, these do not tell."""
SIZES = 2.0 ** np.arange(-4, 5)
"""Sizes of logits that are tried for that: the committee scales them anyway."""
LEAST_GAIN = 64 * float(np.finfo(np.float64).eps)
TOGETHER = 1 << 16
"""Labels times classes times fits up to which all fits are found together."""


class LogisticMember(Member):
    """Logistic regression."""

    name = "logistic"
    says_shares = True
    words = "logistic regression on the labelled rows"
    model = LinearModel

    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Fit to all labelled rows, and to folds of them."""
        rows, targets = evidence.rows.astype(np.float64, copy=False), evidence.targets
        held = [left for _, left in folds(evidence.part.codes, evidence.problem.settings.seed)]
        left_out = [np.empty(0, dtype=np.int64), *held]
        loss = np.inf
        for strength in (STRENGTH, *WEAKER):
            own, *others = fit_logistic(rows, targets, evidence.standard, left_out, strength)
            said = np.full(targets.shape, np.nan)
            for other, left in zip(others, held, strict=True):
                said[left] = other.of(rows[left])
            less = held_out_loss(said, targets)
            if less > loss - LEAST_BETTER:
                break
            model, held_out, loss = own, said, less
            if len(targets) < ENOUGH * targets.shape[1]:
                break
        return MemberFit(model, held_out, model.of(evidence.sample_rows))


def held_out_loss(held_out: np.ndarray, targets: np.ndarray) -> float:
    """Log-loss of held-out labels, with logits of the size that suits them best."""
    known = np.isfinite(held_out).all(axis=1)
    logits, truth = held_out[known], targets[known]
    sizes = truth.sum(axis=1)
    return min(
        float((sizes * logsumexp(size * logits, axis=1)).sum() - size * (truth * logits).sum())
        for size in SIZES
    )


def fit_logistic(
    rows: Rows,
    targets: np.ndarray,
    standard: Standard,
    left_out: list[np.ndarray],
    strength: float = STRENGTH,
) -> list[LinearModel]:
    """Fit logistic regression to labelled rows; classes without a row get a low logit.

    Fits of few labels are found together, as one function of all unknowns: that takes as many steps
    as the slowest of them, and a step of six takes hardly longer than that of one.

    ``rows``: (l, m): in float64; ``targets``: (l, c): w·Y of the rows; ``standard``: centre and
    spread of the features over all rows: a handful of labelled rows does not know them;
    ``left_out``: for each fit the rows that it must not see.
    """
    centre, spread = standard
    scaled = (
        rows @ sparse.diags(1.0 / spread) if sparse.issparse(rows) else (rows - centre) / spread
    )
    # w·Y as each fit sees it, one at a time where labels are many.
    numbers = np.arange(len(targets))
    shown: Iterator[np.ndarray] = (targets * ~np.isin(numbers, left)[:, None] for left in left_out)
    fits = []
    if len(left_out) * targets.size <= TOGETHER:
        together = np.stack(list(shown))
        seen = np.asarray(together.any(axis=1))
        if (seen == seen[0]).all():
            some = minimise_loss(scaled, together[:, :, np.flatnonzero(seen[0])], strength)
            fits = [(*fit, seen[0]) for fit in some]
        shown = iter(together)
    if not fits:
        for own in shown:  # without the rows and classes that it does not see
            rows_seen, classes = np.flatnonzero(own.any(axis=1)), np.asarray(own.any(axis=0))
            part = own[rows_seen][None, :, np.flatnonzero(classes)]
            fits += [(*fit, classes) for fit in minimise_loss(scaled[rows_seen], part, strength)]
    models = []
    for slopes, intercepts, classes in fits:  # for rows as they are, and all classes
        slopes = slopes / spread[:, None]
        intercepts = intercepts - centre @ slopes
        if not classes.all():
            every = np.zeros((len(slopes), len(classes)))
            every[:, classes] = slopes
            levels = np.full(len(classes), intercepts.min() - 2.0)
            levels[classes] = intercepts
            slopes, intercepts = every, levels
        models.append(LinearModel(slopes, intercepts))
    return models


def minimise_loss(
    rows: Rows, shown: np.ndarray, strength: float = STRENGTH
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Slopes and intercepts of least regularised loss of each fit.  (m, c) and (c,).

    ``shown`` (f, l, c) is w·Y; the function that is minimised is the sum of the fits' own. Two
    classes have one logit, half of it for the second and minus half for the first.
    """
    from scipy.optimize import minimize  # slow to load, and scoring new rows does without

    n_fits, n_rows, n_classes = shown.shape
    two = n_classes == 2
    targets = np.ascontiguousarray(shown.transpose(1, 0, 2))
    sizes = targets.sum(axis=2, keepdims=True)
    totals = sizes.sum(axis=0)
    targets, sizes = targets / totals, sizes / totals
    penalty = 1.0 / (strength * totals)
    width = 1 if two else n_classes

    def loss(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        coefficients = unknown.reshape(-1, n_fits * width)
        slopes = coefficients[:-1]
        logits = (rows @ slopes + coefficients[-1]).reshape(n_rows, n_fits, width)
        if two:
            logits = np.concatenate([np.zeros_like(logits), logits], axis=2)
        logits -= logits.max(axis=2, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(axis=2, keepdims=True)
        value = float((sizes * np.log(sums)).sum() - (targets * logits).sum())
        shares *= sizes / sums
        shares -= targets
        excess = shares[:, :, -width:].reshape(n_rows, -1)
        pulled = (slopes.reshape(-1, n_fits, width) * penalty).reshape(slopes.shape)
        gradient = np.empty_like(coefficients)
        gradient[:-1] = rows.T @ excess
        gradient[:-1] += pulled
        gradient[-1] = excess.sum(axis=0)
        return value + 0.5 * float((slopes * pulled).sum()), gradient.ravel()

    minimum = minimize(
        loss,
        np.zeros((rows.shape[1] + 1) * n_fits * width),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": ITERATIONS, "maxls": 50, "gtol": TOLERANCE, "ftol": LEAST_GAIN},
    )
    fits = minimum.x.reshape(-1, n_fits, width).transpose(1, 0, 2)
    if two:
        fits = np.concatenate([-fits / 2, fits / 2], axis=2)
    return [(one[:-1], one[-1]) for one in fits]


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
    # The folds of scikit-learn's StratifiedKFold, shuffled: the labels of a class are dealt out in
    # turn, and the next class goes on where it stopped.
    shuffle = np.random.RandomState(seed % 2**32).shuffle
    fold, dealt = np.empty(len(places), dtype=np.int64), 0
    seen, first = np.unique(codes[places], return_index=True)
    for code in seen[np.argsort(first)].tolist():
        own = np.flatnonzero(codes[places] == code)
        turns = np.sort((dealt + np.arange(len(own))) % n_folds)
        shuffle(turns)
        fold[own] = turns
        dealt += len(own)
    for number in range(n_folds):
        learnt = np.concatenate([places[fold != number], alone])
        if len(np.unique(codes[learnt])) >= 2:
            yield learnt, places[fold == number]
