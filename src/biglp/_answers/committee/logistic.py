"""Logistic regression on the labelled rows, well regularised.

What it says of held-out rows comes from a few folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from biglp._answers.committee.member import Evidence, LinearOpinion, Member, MemberFit
from biglp._answers.standard import Standard, to_float64
from biglp._core.arrays import Rows

FOLDS = 5
STRENGTH = 0.1
"""C of scikit-learn's LogisticRegression: hundreds of features and tens of labels are usual."""
ITERATIONS, TOLERANCE = 200, 1e-3
MANY_CLASSES = "The number of unique classes is greater than"
"""How scikit-learn begins to wonder whether labels are numbers; here they are classes."""


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
    distributions: a row then stands once for each of its classes, with that weight.
    """
    # Loading scikit-learn takes a second: only where there is something to fit.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    centre, spread = standard
    scaled = (
        rows @ sparse.diags(1.0 / spread) if sparse.issparse(rows) else (rows - centre) / spread
    )
    weights = None
    if given is not None:
        places, codes = np.nonzero(given)
        scaled, weights = scaled[places], given[places, codes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close is close enough here
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        fitted = LogisticRegression(C=STRENGTH, max_iter=ITERATIONS, tol=TOLERANCE)
        fitted.fit(scaled, codes, weights)
    slopes, intercepts = fitted.coef_.T, fitted.intercept_
    if slopes.shape[1] == 1:  # two classes: one logit for the second
        slopes = np.hstack([-slopes / 2, slopes / 2])
        intercepts = np.hstack([-intercepts / 2, intercepts / 2])
    slopes = slopes / spread[:, None]
    intercepts = intercepts - centre @ slopes
    if len(fitted.classes_) == n_classes:
        return LinearOpinion(slopes, intercepts)
    every = np.zeros((slopes.shape[0], n_classes))
    every[:, fitted.classes_] = slopes
    levels = np.full(n_classes, intercepts.min() - 2.0)
    levels[fitted.classes_] = intercepts
    return LinearOpinion(every, levels)


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
    from sklearn.model_selection import StratifiedKFold  # slow to load, as above

    n_folds = int(min(FOLDS, counts[counts >= 2].min()))
    parts = StratifiedKFold(n_folds, shuffle=True, random_state=seed % 2**32)
    for train, test in parts.split(places, codes[places]):
        seen = np.concatenate([places[train], alone])
        if len(np.unique(codes[seen])) >= 2:
            yield seen, places[test]
