"""Which given labels are probably wrong, from what is said of their rows without them.

Row i was given the label (or label distribution) y_i of weight w_i; p_i are its class probabilities
by models that learnt from the other labels. Some of those are wrong too, which makes the models
less sure than they should be: the true class is taken to have the probabilities p_i^β, made to add
up to 1. With q_i = Σ_j y_ij·p_ij^β / Σ_j p_ij^β, and a share ε of labels that are wrong, each as
likely to be any other class,

    P(label i) = (1 − ε_i)·q_i + ε_i·(1 − q_i) / (c − 1),      ε_i = ε^w_i,
    P(wrong | label i) = ε_i·(1 − q_i) / (c − 1) / P(label i).

So a label that its row's neighbours contradict is not wrong for that alone: where classes overlap
many labels are unlikely, and where labels are known to be good few can be wrong. ε and β minimise

    −Σ_i log P(label i) − log ε − 19·log(1 − ε) + 2·(log β)²,

as if twenty labels had been looked at before and one of them was wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biglp._labels.labels import Labels

LOOKED_AT_BEFORE, WRONG_BEFORE = 20.0, 1.0
"""Labels that ε stands on before any label is seen. The share is that of ``LABEL_TRUST``."""
SHARPNESS_PULL = 2.0
SHARPNESS = (-1.5, 1.5)
"""Range of log β."""
RATES = (1e-4, 0.4)
"""Range of ε."""
LEAST_CHANCE = 1e-12
PROBABLY = 0.5
"""Probability above which a label is called probably wrong."""


def find_doubts(labels: Labels, probabilities: np.ndarray) -> LabelDoubts:
    """Judge labels by the class probabilities of their rows without them, (l, c), NaN if unknown.

    Of rows with NaN nothing is thought.
    """
    from scipy.optimize import minimize  # slow to load, and scoring new rows does without

    known = np.flatnonzero(np.isfinite(probabilities).all(axis=1))
    labels, probabilities = labels.take(known), np.asarray(probabilities[known], dtype=np.float64)
    index, codes = np.arange(len(known)), labels.codes
    logs = np.log(np.maximum(probabilities, LEAST_CHANCE))
    logs -= logs.max(axis=1, keepdims=True)
    others = max(probabilities.shape[1] - 1, 1)
    highest = others / (others + 1.0)  # a label of weight near 0 is a class drawn by lot
    weights = np.ones(len(logs)) if labels.weights is None else labels.weights
    prior = np.array([WRONG_BEFORE, LOOKED_AT_BEFORE - WRONG_BEFORE])

    def judged(unknown: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """The loss and its slopes by ε and log β; agreement q and ε_i, (l,) each."""
        rate, log_sharpness = unknown
        sharpness, rates = np.exp(log_sharpness), np.minimum(rate**weights, highest)
        sharp = sharpness * logs
        np.exp(sharp, out=sharp)
        sharp /= sharp.sum(axis=1, keepdims=True)
        by_log = sharp * logs
        if labels.distribution is None:
            agreement, slope = sharp[index, codes], by_log[index, codes]
        else:
            given = labels.distribution
            agreement, slope = (np.einsum("lc,lc->l", given, part) for part in (sharp, by_log))
        slope = sharpness * (slope - agreement * by_log.sum(axis=1))
        label = (1.0 - rates) * agreement + rates * (1.0 - agreement) / others
        value = SHARPNESS_PULL * log_sharpness**2 - np.log(label).sum()
        value -= prior @ np.log([rate, 1.0 - rate])
        grown = np.where(rates < highest, weights * rates / rate, 0.0)
        by_rate = -(grown * ((1.0 - agreement) / others - agreement) / label).sum()
        by_rate -= prior @ [1.0 / rate, -1.0 / (1.0 - rate)]
        by_sharpness = 2.0 * SHARPNESS_PULL * log_sharpness
        by_sharpness -= (slope * (1.0 - rates - rates / others) / label).sum()
        return float(value), np.array([by_rate, by_sharpness]), agreement, rates

    first = np.array([WRONG_BEFORE / LOOKED_AT_BEFORE, 0.0])
    best = minimize(
        lambda unknown: judged(unknown)[:2],
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[RATES, SHARPNESS],
    ).x
    _, _, agreement, rates = judged(best)
    wrong = rates * (1.0 - agreement) / others
    probability = probabilities[index, codes]
    probabilities[index, codes] = -1.0
    suggested = probabilities.argmax(axis=1)
    return LabelDoubts(
        rows=labels.rows,
        codes=codes,
        suggested=suggested,
        probability=probability,
        suggested_probability=probabilities[index, suggested],
        wrong=wrong / ((1.0 - rates) * agreement + wrong),
        error_rate=float(best[0]),
    )


@dataclass(frozen=True)
class LabelDoubts:
    """What is thought of the l labels that could be looked at; rows increase.

    ``codes`` are the classes given (of a distribution the likeliest), ``suggested`` the likeliest
    others, with the probabilities of both without the row's own label; ``wrong`` is the probability
    that the label is wrong, and ``error_rate`` is ε.
    """

    rows: np.ndarray
    codes: np.ndarray
    suggested: np.ndarray
    probability: np.ndarray
    suggested_probability: np.ndarray
    wrong: np.ndarray
    error_rate: float

    @property
    def n_probably_wrong(self) -> int:
        """Labels that are more likely wrong than right."""
        return int((self.wrong > PROBABLY).sum())

    def listed(self, labels: Labels, least: float | None = None) -> DoubtfulLabels:
        """The doubtful ones among the labels, by the names of their classes."""
        # Where several are wrong to all digits, what was given tells them apart.
        order = np.lexsort((self.rows, self.probability, -self.wrong))
        contradicted = self.suggested_probability > self.probability
        order = order[(contradicted if least is None else self.wrong >= least)[order]]
        return DoubtfulLabels(
            rows=self.rows[order],
            labels=labels.classes[self.codes[order]],
            suggested_labels=labels.classes[self.suggested[order]],
            probability=self.probability[order],
            suggested_probability=self.suggested_probability[order],
            wrong=self.wrong[order],
            n_labels=len(labels.rows),
            n_checked=len(self.rows),
            n_probably_wrong=self.n_probably_wrong,
            error_rate=self.error_rate,
        )


COLUMNS = {
    "row": "rows",
    "label": "labels",
    "suggested_label": "suggested_labels",
    "probability": "probability",
    "suggested_probability": "suggested_probability",
    "wrong": "wrong",
}
"""Columns of the table, and the attributes that hold them."""
SHOWN = 10
"""Lines of the table that are printed."""


@dataclass(frozen=True, repr=False)
class DoubtfulLabels:
    """A table of labels that the rest of the data contradicts, the most doubtful first.

    ``found["label"]`` is a column, ``found[0]`` a line as a dict, ``found[:5]`` and
    ``found[found.wrong > 0.5]`` are shorter tables. ``found.to_pandas()`` is a data frame.

    Attributes
    ----------
    rows : ndarray of shape (q,)
        Row numbers, counted from 0.
    labels, suggested_labels : ndarrays of shape (q,)
        What each row was given, and what the rest of the data says.
    probability, suggested_probability : ndarrays of shape (q,)
        How likely each of the two is without the row's own label.
    wrong : ndarray of shape (q,)
        Probability that the label is wrong: how many labels are wrong is estimated too, and where
        classes overlap a label may be both unlikely and right.
    n_labels, n_checked : int
        Labels given, and those that could be looked at: the only label of a class cannot.
    n_probably_wrong : int
        Labels that are wrong with a probability above 0.5.
    error_rate : float
        Share of all labels that seems to be wrong.
    """

    rows: np.ndarray
    labels: np.ndarray
    suggested_labels: np.ndarray
    probability: np.ndarray
    suggested_probability: np.ndarray
    wrong: np.ndarray
    n_labels: int
    n_checked: int
    n_probably_wrong: int
    error_rate: float

    def __len__(self) -> int:
        """Labels in the list."""
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """A column by its name, a line by its place, or the lines of a slice, mask or places."""
        columns = self.to_dict()
        if isinstance(key, str):
            if key not in columns:
                raise KeyError(f"there is no column {key!r}; there are {', '.join(columns)}")
            return columns[key]
        if isinstance(key, (int, np.integer)):
            return next(iter(self[[key]]))
        return replace(self, **{name: getattr(self, name)[key] for name in COLUMNS.values()})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the lines, as dicts."""
        for values in zip(*(column.tolist() for column in self.to_dict().values()), strict=True):
            yield dict(zip(COLUMNS, values, strict=True))

    def __repr__(self) -> str:
        """The first lines as text."""
        verb = "is" if self.n_probably_wrong == 1 else "are"
        head = f"{len(self):,} doubtful labels; {self.n_probably_wrong:,} of the "
        head += f"{self.n_checked:,} that were checked {verb} probably wrong"
        table = [list(COLUMNS)]
        for line in self[:SHOWN]:
            table.append([f"{v:.2f}" if isinstance(v, float) else str(v) for v in line.values()])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.rjust, line, widths)) for line in table] if len(self) else []
        more = [f"… and {len(self) - SHOWN:,} more"] if len(self) > SHOWN else []
        return "\n".join([head, *lines, *more])

    def to_dict(self) -> dict[str, np.ndarray]:
        """The columns by their names."""
        return {name: getattr(self, field) for name, field in COLUMNS.items()}

    def to_pandas(self) -> Any:
        """A data frame of the columns; pandas has to be installed."""
        import pandas

        return pandas.DataFrame(self.to_dict())
