"""Rows that stay on a device once they have been brought there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from biglp._core.arrays import beside

class ResidentRows:
    """A tensor for all rows of a source that is filled part by part, by any number of threads.

    Parameters
    ----------
    room : torch tensor of shape (n, m)
        Where the rows go.
    """

    def __init__(self, room: Any) -> None:
        self._rows = room
        self._lock = threading.Lock()
        self._parts: set[tuple[int, int]] = set()
        self._missing = int(room.shape[0])

    @property
    def all_there(self) -> bool:
        """Whether every row has been brought."""
        return self._missing == 0

    def read(self, start: int, stop: int, fill: Callable[[Any], None]) -> Any:
        """Return rows, which ``fill(room)`` brings where they are not there yet."""
        view = self._rows[start:stop]
        if not self.all_there and (start, stop) not in self._parts:
            fill(view)
            with self._lock:
                # Two threads may fill the same rows; they write the same numbers.
                if all(stop <= first or last <= start for first, last in self._parts):
                    self._parts.add((start, stop))
                    self._missing -= stop - start
        return view

    def take(self, indices: np.ndarray) -> Any:
        """Return a copy of some rows, when all are there."""
        return self._rows[beside(self._rows, indices)]
