"""A data set, ready for ``fit``, and the paper's way of splitting it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows.simulated import SimulatedSource, Simulation
from paper.datasets.registry import (
    LABELS,
    ROWS,
    Entry,
    entry,
    prepared_folder,
    read_meta,
    stand_in_file,
)

TEST_SHARE = 0.2
_BLOCK = 1 << 20
_DRAWS = 1000


class Split(NamedTuple):
    """Rows of a trial: increasing positions, none in both.

    Examples
    --------
    >>> from paper.datasets import Split
    >>> train, test = Split([0, 2], [1, 3])
    >>> test
    [1, 3]
    """

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """Rows and labels of a data set.

    Attributes
    ----------
    name : str
    rows : array of shape (n_rows, n_features), or str
        What ``fit`` takes as X: an array, mapped from the cache, or the text of a simulation.
    labels : array of shape (n_rows,)
        Class of every row.
    classes : tuple of int
    description : str
        What it is, where it is from, under which licence.
    stand_in_for : str or None
        What these rows are used in the place of, and how they differ; None for the data set itself.
    paper_rows : int
        Rows that the data set has in the paper; its percentages are of these.
    percents : tuple of float
        Percentages of labelled rows in the paper's table.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.datasets import Dataset
    >>> rows, classes = np.eye(100), np.arange(100) % 2
    >>> data = Dataset("mine", rows, (0, 1), "", None, 1000, (1.0,), 100, 100, classes)
    >>> [len(part) for part in data.split(n_train=10)], data.paper_labels(1.0)
    ([10, 20], 10)
    """

    name: str
    rows: Any = field(repr=False)
    classes: tuple[int, ...]
    description: str
    stand_in_for: str | None
    paper_rows: int
    percents: tuple[float, ...]
    n_rows: int
    n_features: int
    _labels: Any = field(repr=False, default=None)

    @cached_property
    def labels(self) -> np.ndarray:
        """Class of every row; those of a simulation are made when they are asked for."""
        if self._labels is not None:
            return self._labels
        source = SimulatedSource(Simulation.parse(self.rows))
        out = np.empty(self.n_rows, dtype=np.int16)
        for start in range(0, self.n_rows, _BLOCK):
            stop = min(start + _BLOCK, self.n_rows)
            out[start:stop] = source.truth(start, stop)
        return out

    def paper_labels(self, percent: float) -> int:
        """Labelled rows that the paper had at a percentage, to compare at equal numbers."""
        return max(round(self.paper_rows * percent / 100), 1)

    def split(
        self, percent: float | None = None, seed: int = 0, *, n_train: int | None = None
    ) -> Split:
        """Split the rows as the paper does.

        A fifth of the rows, always the same, is held out as test set. Of the others ``percent`` of
        *all* rows, drawn again for each seed, are labelled for training. A draw without a row of
        each class is drawn again: nothing can be learnt from it.

        Parameters
        ----------
        percent : float, optional
            Labelled rows, in percent of all rows.
        seed : int
            Trial.
        n_train : int, optional
            Labelled rows, in place of ``percent``.

        Returns
        -------
        split : Split
            ``train`` and ``test``, increasing row numbers.
        """
        if (percent is None) == (n_train is None):
            raise ParameterError("give the labelled rows as percent= or as n_train=, one of them.")
        asked = f"n_train={n_train}" if percent is None else f"percent={percent}"
        if n_train is None:
            assert percent is not None
            n_train = round(self.n_rows * percent / 100)
        n_test = round(self.n_rows * TEST_SHARE)
        most = self.n_rows - n_test
        if not len(self.classes) <= n_train <= most:
            raise ParameterError(
                f"{asked} asks for {n_train:,} labelled rows of {self.n_rows:,}; "
                f"{len(self.classes)} (one a class) to {most:,} (the rest is the test set) are "
                "possible."
            )
        test = sorted_sample(self.n_rows, n_test, np.random.default_rng(20))
        rng = np.random.default_rng([21, seed])
        for _ in range(_DRAWS):
            # The k-th row that is not in the test set: k plus the test rows before it.
            place = sorted_sample(most, n_train, rng)
            before = np.searchsorted(test - np.arange(n_test), place, side="right")
            train = place + before
            if len(np.unique(self._labels_of(train))) == len(self.classes):
                return Split(train, test)
        raise ParameterError(
            f"{_DRAWS} draws of {n_train:,} rows had no row of one of the classes {self.classes}; "
            "ask for more labelled rows."
        )

    def _labels_of(self, rows: np.ndarray) -> np.ndarray:
        if self._labels is None:
            return SimulatedSource(Simulation.parse(self.rows)).classes_of(rows)
        return np.asarray(self._labels[rows])


def sorted_sample(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``size`` of the numbers 0 to n - 1, each set equally likely, increasing.

    Block by block: how many fall into a block is hypergeometric, so no list of n numbers is made.
    """
    parts, left = [np.empty(0, dtype=np.int64)], size
    for start in range(0, n, _BLOCK):
        here = min(_BLOCK, n - start)
        after = n - start - here
        count = left if after == 0 else int(rng.hypergeometric(here, after, left))
        parts.append(start + np.sort(rng.choice(here, count, replace=False, shuffle=False)))
        left -= count
    return np.concatenate(parts)


def load(name: str, *, stand_in: bool | Literal["auto"] = False) -> Dataset:
    """Open a data set that is in the cache or in ``BIGLP_DATA``.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    stand_in : bool or "auto"
        Use the smaller file of ``BIGLP_DATA`` that stands in for it: always, never, or where the
        data set itself is missing. The answer says so in ``stand_in_for``.

    Returns
    -------
    dataset : Dataset

    Raises
    ------
    BadRowsError
        When it is not there; the message says how to get it.

    Examples
    --------
    >>> from biglp import datasets
    >>> data = datasets.load("sim100m")  # made when it is read, so that nothing is fetched
    >>> data.n_rows, data.n_features
    (100000000, 100)
    """
    known = entry(name)
    if stand_in not in (True, False, "auto"):
        raise ParameterError(f"stand_in={stand_in!r} must be True, False or 'auto'.")
    if known.simulation is not None:
        return _dataset(known, known.simulation, None, (known.rows, known.features), None)
    folder = prepared_folder(known)
    if folder is not None and stand_in is not True:
        rows, labels = (np.load(folder / file, mmap_mode="r") for file in (ROWS, LABELS))
        meta = read_meta(folder)
        note = None
        if known.deformed_from is not None:
            note = f"{entry(known.deformed_from).title}: {known.title}; {meta['from'][0]} deformed"
        return _dataset(known, rows, labels, rows.shape, note)
    if stand_in and stand_in_file(known) is not None:
        assert known.stand_in is not None
        rows, labels = read_stand_in(known)
        note = f"{known.title}: {known.stand_in.what}"
        return _dataset(known, rows, labels, rows.shape, note, known.stand_in.classes)
    raise BadRowsError(missing_message(known, bool(stand_in)))


def read_stand_in(known: Entry) -> tuple[np.ndarray, np.ndarray]:
    """Read the file that stands in for a data set: rows and labels of its classes."""
    path = stand_in_file(known)
    assert path is not None
    assert known.stand_in is not None
    try:
        with np.load(path, allow_pickle=False) as found:
            labels = found["y"].astype(np.int16)
            chosen = np.flatnonzero(np.isin(labels, known.stand_in.classes))
            return found["X"][chosen], labels[chosen]
    except (OSError, ValueError, KeyError) as error:
        raise BadRowsError(
            f"{path} cannot be read: {error}. It should hold the arrays X and y."
        ) from error


def missing_message(known: Entry, stand_in: bool = False) -> str:
    """Say that a data set is missing and how to get it."""
    text = f"{known.name} is not here. Run: python -m paper datasets fetch {known.name}"
    if known.stand_in is None:
        return text
    if stand_in:
        file = Path(known.stand_in.file).name
        return f"{text}, or name the folder that holds its stand-in {file} in BIGLP_DATA."
    if stand_in_file(known) is not None:
        return f"{text}, or use what stands in for it (stand_in=True): {known.stand_in.what}."
    return text


def _dataset(
    known: Entry,
    rows: Any,
    labels: Any,
    shape: tuple[int, int],
    stand_in_for: str | None,
    classes: tuple[int, ...] | None = None,
) -> Dataset:
    shown = f"{shape[0]:,} rows × {shape[1]:,} features"
    if labels is not None and stand_in_for is None and shape[0] != known.rows:
        shown += f" ({known.rows:,} rows were expected)"
    about = f"{known.title}; {shown}. {known.note} Licence: {known.licence}. {known.citation}"
    if stand_in_for is not None:
        about = f"A stand-in ({stand_in_for}; {shown}). {about}"
    return Dataset(
        name=known.name,
        rows=rows,
        classes=classes or known.classes,
        description=about,
        stand_in_for=stand_in_for,
        paper_rows=known.paper_rows,
        percents=known.percents,
        n_rows=shape[0],
        n_features=shape[1],
        _labels=labels,
    )
