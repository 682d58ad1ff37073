"""What the accuracy table holds of one answer: figures from class probabilities of hidden rows."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

LEAST = 1e-6
"""Probabilities are raised to this for the log-loss; classes that nobody labelled get it too."""


def area(stated: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve; ties count half."""
    ranks = rankdata(stated)
    ours, others = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - ours * (ours + 1) / 2) / (ours * others))


def auc(stated: np.ndarray, truth: np.ndarray) -> float:
    """Area under the curve: of class 1 where there are two, else the mean of one against all."""
    found = np.unique(truth)
    if len(found) < 2:
        return float("nan")
    if stated.shape[1] == 2:
        return area(stated[:, 1], truth == 1)
    return float(np.mean([area(stated[:, code], truth == code) for code in found]))


def log_loss(stated: np.ndarray, truth: np.ndarray) -> float:
    """Mean of −log(probability of the true class)."""
    raised = np.maximum(stated, LEAST)
    return float(-np.log(raised[np.arange(len(truth)), truth] / raised.sum(axis=1)).mean())


def reliability(stated: np.ndarray, right: np.ndarray) -> list[tuple[int, int, float, float]]:
    """Bin, rows, mean stated probability and share of right answers, for tenths."""
    bins = np.minimum((10 * stated).astype(int), 9)
    lines = []
    for number in np.unique(bins):
        here = bins == number
        found = round(float(stated[here].mean()), 4), round(float(right[here].mean()), 4)
        lines.append((int(number), int(here.sum()), *found))
    return lines


def figures(stated: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Everything; percents but for the log-loss.

    Parameters
    ----------
    stated : ndarray of shape (rows, classes)
        Probabilities.
    truth : ndarray of shape (rows,)
        Classes from 0 on.
    """
    stated = stated.astype(float)
    found, surest = stated.argmax(axis=1), stated.max(axis=1)
    right = found == truth
    recalls = [right[truth == code].mean() for code in np.unique(truth)]
    bins = reliability(surest, right)
    error = sum(rows * abs(mean - share) for _, rows, mean, share in bins) / len(truth)
    return {
        "accuracy": 100 * float(right.mean()),
        "balanced": 100 * float(np.mean(recalls)),
        "auc": 100 * auc(stated, truth),
        "log_loss": log_loss(stated, truth),
        "calibration": 100 * float(error),
        "confidence": 100 * float(surest.mean()),
    }
