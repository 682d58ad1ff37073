"""Answers in memory, for the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import largest_column


class ArraySink:
    """Answers kept in memory: the class code and the probabilities of every row."""

    in_memory = True

    def __init__(self, classes: np.ndarray, n_rows: int, dtype: np.dtype[Any]) -> None:
        self.codes = np.empty(n_rows, dtype=np.int32)
        self.probabilities = np.empty((n_rows, len(classes)), dtype=dtype)

    def write(self, start: int, probabilities: np.ndarray) -> None:
        """Keep the answers of the rows from ``start`` on."""
        stop = start + len(probabilities)
        self.probabilities[start:stop] = probabilities
        self.codes[start:stop] = largest_column(probabilities)

    def sync(self) -> None:
        """Nothing to do: memory does not survive a crash anyway."""


class ValuesSink:
    """Values of regression kept in memory."""

    in_memory = True

    def __init__(self, n_rows: int, n_targets: int) -> None:
        self.values = np.empty((n_rows, n_targets))

    def write(self, start: int, values: np.ndarray) -> None:
        """Keep the values of the rows from ``start`` on."""
        self.values[start : start + len(values)] = values

    def sync(self) -> None:
        """Nothing to do: memory does not survive a crash anyway."""
