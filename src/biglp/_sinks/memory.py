"""Answers in memory, for the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import largest_column
from biglp._sinks.base import Sink


class ArraySink(Sink):
    """Answers kept in memory: the class code and the probabilities of every row."""

    def __init__(self, classes: np.ndarray, n_rows: int, dtype: np.dtype[Any]) -> None:
        self.codes = np.empty(n_rows, dtype=np.int32)
        self.probabilities = np.empty((n_rows, len(classes)), dtype=dtype)
        labels = n_rows * classes.dtype.itemsize  # which the estimator makes of the codes
        self.n_bytes = self.codes.nbytes + self.probabilities.nbytes + labels

    def write(self, start: int, answers: np.ndarray) -> None:
        """Keep the answers of the rows from ``start`` on."""
        stop = start + len(answers)
        self.probabilities[start:stop] = answers
        self.codes[start:stop] = largest_column(answers)


class ValuesSink(Sink):
    """Values of regression kept in memory."""

    def __init__(self, n_rows: int, n_targets: int) -> None:
        self.values = np.empty((n_rows, n_targets))
        self.n_bytes = self.values.nbytes

    def write(self, start: int, answers: np.ndarray) -> None:
        """Keep the values of the rows from ``start`` on."""
        self.values[start : start + len(answers)] = answers
