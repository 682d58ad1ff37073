"""The data behind the experiments: the paper's five data sets, or stand-ins for them.

A data set that ``biglp datasets fetch`` has brought is used itself. Otherwise its stand-in, a file
with arrays ``X`` and ``y``, is looked for in the folder that BIGLP_DATA names. Missing data is
reported, with how to get it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from biglp import datasets
from biglp._core.errors import BadRowsError
from biglp.datasets.places import data_folder

VARIABLE = "BIGLP_DATA"
MOST_ROWS = 100_000
"""Random rows of a whole data set that the tables are made with; 5-NN would take long on more."""


class MissingDataError(LookupError):
    """A data set is not here; the message says how to get it."""


@dataclass(frozen=True)
class StandIn:
    """What takes the place of one of the paper's data sets.

    Attributes
    ----------
    table : str
        The paper's data set.
    file : str
        Name of the file.
    title : str
        Name for people.
    pair : tuple of int
        The two classes that are kept.
    same_problem : bool
        Whether accuracies can be set beside the paper's.
    about : str
        What differs, in a sentence.
    most_rows : int, optional
        Random rows that are kept, where there are more.
    """

    table: str
    file: str
    title: str
    pair: tuple[int, int]
    same_problem: bool
    about: str
    most_rows: int | None = None


@dataclass(frozen=True)
class DataSet:
    """Rows and their true classes, 0 or 1."""

    stand_in: StandIn
    X: np.ndarray
    truth: np.ndarray

    @property
    def title(self) -> str:
        """Name and shape."""
        return f"{self.stand_in.title} ({self.X.shape[0]:,} × {self.X.shape[1]:,})"


STAND_INS = {
    "HEPMASS": StandIn(
        "HEPMASS",
        "higgs_subset_18k.npz",
        "HIGGS subset",
        (0, 1),
        False,
        "Another and much harder collision problem (raw HIGGS features); the paper's accuracies "
        "cannot be expected of it.",
    ),
    "SUSY": StandIn(
        "SUSY",
        "susy_subset_30k.npz",
        "SUSY subset",
        (0, 1),
        True,
        "30,000 of the 5,000,000 rows of the same data set.",
    ),
    "mnist8m": StandIn(
        "mnist8m",
        "mnist.npz",
        "MNIST 7 v 9",
        (7, 9),
        True,
        "The originals that mnist8m is deformed from.",
    ),
    "Protein": StandIn(
        "Protein",
        "protein_val_2871.npz",
        "Protein subset, classes 0 v 2",
        (0, 2),
        True,
        "The validation part of the same data set. The paper does not say which two of the three "
        "classes it kept. Its number of rows fits a pair with class 0, and of these 0 v 2 comes "
        "nearest to its propagation columns; its 5-NN column is nearer to 1 v 2, where classes "
        "are equally large (here the larger one alone is 69 %).",
    ),
    "Gisette": StandIn(
        "Gisette",
        "mnist.npz",
        "MNIST 4 v 9",
        (4, 9),
        False,
        "Gisette is 4 v 9 as well, but with 5,000 derived features, many of them without "
        "information; here are as many rows of raw pixels.",
        7_000,
    ),
}
DIGITS = StandIn(
    "Gisette",
    "(scikit-learn)",
    "digits 4 v 9",
    (4, 9),
    False,
    "Small digits that come with scikit-learn, because mnist.npz is missing.",
)


def find(file: str) -> Path:
    """Return the path of a data file, or explain what is missing."""
    folder = data_folder()
    if folder is not None and (folder / file).is_file():
        return folder / file
    why = f"{VARIABLE} is not set" if folder is None else f"it is not in {folder}"
    raise MissingDataError(
        f"{file} is missing: {why}. Set {VARIABLE} to a folder that holds {file} "
        "(a NumPy archive with arrays X, one row a sample, and y), and run again."
    )


def fetched(table: str) -> DataSet | None:
    """One of the paper's data sets itself, or as many of its rows as are used; None if not here."""
    try:
        whole = datasets.load(table.lower())
    except BadRowsError:
        return None
    chosen = np.arange(whole.n_rows)
    if whole.n_rows > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(whole.n_rows)[:MOST_ROWS])
    first, second = whole.classes
    part = f"{len(chosen):,} random rows of " if whole.n_rows > MOST_ROWS else ""
    itself = StandIn(
        table, "", f"{part}{table}", (first, second), True, "The paper's own data set."
    )
    return DataSet(
        itself,
        np.ascontiguousarray(whole.rows[chosen], dtype=np.float32),
        (np.asarray(whole.labels)[chosen] == second).astype(np.int8),
    )


def load_each(
    names: Iterable[str], missing: list[str], say: Callable[[str], None]
) -> Iterator[tuple[str, DataSet]]:
    """Load the paper's data sets in turn; those that are not here are said and added to a list."""
    for name in names:
        try:
            data = load(name)
        except MissingDataError as error:
            missing.append(f"{name}: {error}")
            say(f"{name} is left out. {error}")
        else:
            yield name, data


def load(table: str) -> DataSet:
    """Load one of the paper's data sets, or its stand-in."""
    itself = fetched(table)
    if itself is not None:
        return itself
    stand_in = STAND_INS[table]
    try:
        with np.load(find(stand_in.file)) as archive:
            rows, codes = archive["X"], archive["y"]
    except MissingDataError as error:
        if table != DIGITS.table:
            fetch = f" Or get the paper's own data with: biglp datasets fetch {table.lower()}"
            raise MissingDataError(f"{error}{fetch}") from None
        from sklearn.datasets import load_digits

        stand_in = DIGITS
        rows, codes = load_digits(return_X_y=True)
    chosen = np.flatnonzero(np.isin(codes, stand_in.pair))
    if stand_in.most_rows is not None and len(chosen) > stand_in.most_rows:
        chosen = np.sort(np.random.default_rng(0).permutation(chosen)[: stand_in.most_rows])
    return DataSet(
        stand_in,
        np.ascontiguousarray(rows[chosen], dtype=np.float32),
        (codes[chosen] == stand_in.pair[1]).astype(np.int8),
    )
