"""The members of the committee, and what they say of labelled rows whose label they did not see.

Label spreading at α gives class densities: column j of F divided by its mass is the distribution
over rows of a walk that starts at the labels of class j, so n·F_ij / Σ_i F_ij is 1 on average for
every class, however many labels it has. Leave-one-out is exact and free
(:mod:`biglp._propagate.leave_one_out`).

Logistic regression is fitted on the labelled rows, features standardised; what it says of held-out
rows comes from a few folds. The class means (:mod:`.means`) say what is left of it under strong
regularisation. A forest (:mod:`.forest`) and the nearest labelled rows (:mod:`.nearest`) are asked
as well where there are labels enough for them and not so many rows that asking would take longer
than all the rest.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from biglp._answers.committee.decision import graph_logits
from biglp._core.arrays import Rows
from biglp._propagate.class_balance import class_mass
from biglp._propagate.leave_one_out import LabelledRows, leave_one_out, left_alone
from biglp._propagate.systems import Graph

ALPHAS = (0.5, 0.9, 0.99)
FOLDS = 5
Standard = tuple[np.ndarray, np.ndarray]
"""Centre and spread of every feature."""
LOGISTIC_ITERATIONS, LOGISTIC_TOLERANCE = 200, 1e-3


@dataclass(frozen=True)
class Member:
    """One opinion: its name, what it says of held-out labelled rows, and of a sample of rows."""

    name: str
    held_out: np.ndarray
    sample: np.ndarray


@dataclass(frozen=True)
class LinearModel:
    """A linear opinion on prepared rows: logits = rows·slopes + intercepts."""

    slopes: np.ndarray
    intercepts: np.ndarray

    def logits(self, rows: Rows) -> np.ndarray:
        """Logits of rows.  (b, m) → (b, c)."""
        return np.asarray(rows @ self.slopes + self.intercepts)


def density_coefficients(spectrum: Graph, coefficients: np.ndarray, alpha: float) -> np.ndarray:
    """C scaled so that F̄·C are class densities, 1 on average.  (r, c)."""
    sums = spectrum.sums
    mass = class_mass(sums.totals, coefficients, sums.counts, alpha)
    return coefficients * (sums.n_rows / mass)


def held_out_by_graph(spectrum: Graph, labelled: LabelledRows, alpha: float) -> np.ndarray:
    """Logits of each labelled row without its own label; NaN where it was its class's only one."""
    scores, masses = leave_one_out(spectrum, labelled, alpha)
    alone = left_alone(spectrum.sums.counts, labelled.targets(scores.shape[1]))
    # A class without any other label has no mass; its row is left out below.
    masses[alone] = 1.0
    densities = scores * (spectrum.sums.n_rows / masses)
    logits: np.ndarray = graph_logits(densities)
    logits[alone] = np.nan
    return logits


def fit_logistic(
    rows: Rows,
    codes: np.ndarray,
    n_classes: int,
    standard: Standard,
    given: np.ndarray | None = None,
) -> LinearModel:
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
        fitted = LogisticRegression(max_iter=LOGISTIC_ITERATIONS, tol=LOGISTIC_TOLERANCE)
        fitted.fit(scaled, codes, weights)
    slopes, intercepts = fitted.coef_.T, fitted.intercept_
    if slopes.shape[1] == 1:  # two classes: one logit for the second
        slopes = np.hstack([-slopes / 2, slopes / 2])
        intercepts = np.hstack([-intercepts / 2, intercepts / 2])
    slopes = slopes / spread[:, None]
    intercepts = intercepts - centre @ slopes
    if len(fitted.classes_) == n_classes:
        return LinearModel(slopes, intercepts)
    every = np.zeros((slopes.shape[0], n_classes))
    every[:, fitted.classes_] = slopes
    levels = np.full(n_classes, intercepts.min() - 2.0)
    levels[fitted.classes_] = intercepts
    return LinearModel(every, levels)


def held_out_by_logistic(
    rows: Rows,
    codes: np.ndarray,
    n_classes: int,
    standard: Standard,
    seed: int,
    given: np.ndarray | None = None,
) -> np.ndarray:
    """Logits of each labelled row from fits that did not see it; NaN for single rows of a class."""
    counts = np.bincount(codes, minlength=n_classes)
    logits = np.full((len(codes), n_classes), np.nan)
    several = counts[codes] >= 2
    if not several.any():
        return logits
    places, alone = np.flatnonzero(several), np.flatnonzero(~several)
    from sklearn.model_selection import StratifiedKFold  # slow to load, as above

    n_folds = int(min(FOLDS, counts[counts >= 2].min()))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed % 2**32)
    for train, test in folds.split(places, codes[places]):
        seen = np.concatenate([places[train], alone])
        if len(np.unique(codes[seen])) < 2:
            continue
        part = None if given is None else given[seen]
        model = fit_logistic(rows[seen], codes[seen], n_classes, standard, part)
        logits[places[test]] = model.logits(rows[places[test]])
    return logits


def centre_and_spread(rows: Rows, *, one_scale: bool = False) -> Standard:
    """Mean (zero for sparse rows) and spread of each feature; a constant feature has spread 1.

    With ``one_scale`` the features share their mean spread: principal components must not be made
    equally large, because the last of them are mostly noise.
    """
    if sparse.issparse(rows):
        square = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
        mean = np.asarray(rows.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        centre = np.zeros_like(mean)
    else:
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
    if one_scale:
        spread = np.full_like(spread, np.sqrt((spread**2).mean()))
    return centre, np.where(spread > 1e-12 * (spread.max() or 1.0), spread, 1.0)
