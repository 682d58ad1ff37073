"""The data sets of the accuracy table, parts of them, and draws of labels.

Thirteen sets are read from a folder (BIGLP_DATA), of three kinds of rows:

- pixels and the like, where all features share one scale (``level``), and plain numbers, from
  ``.npz`` files with ``X`` and ``y``;
- tables with text columns, from ``.csv`` files. As ``pandas.get_dummies`` does it: columns of
  numbers stay as they are and come first; TRUE/FALSE is one column of 0 and 1; every other column
  becomes one column of 0 and 1 for each of its values, in alphabetical order;
- text: AG News as tf-idf (words in two documents or more, English stop words left out: 10,818
  words), the pair of newsgroups as word counts; both as CSR.

Columns and words are those of the whole set; a part is of its rows. Rows of a part are the first
of one random order, so that small parts are in the large ones. A size is left out where a smaller
size holds all rows of the set already: with 1,500, 6,000 and 20,000 rows, a set of 8,000 rows is
measured with 1,500, 6,000 and all. Classes that occur once in a part are left out of it.

A folder may hold a set as ``<name>.part.npz`` (:func:`save_part`): the first rows of that order.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

LEVEL, NUMBERS, TABLE, TEXT = "level", "numbers", "table", "text"
MOST_ROWS = 20_000


@dataclass(frozen=True)
class DataSet:
    """Where a set is and what kind of rows it has."""

    file: str
    kind: str
    target: str = "y"
    words: str = ""
    """Column with text to be turned into tf-idf."""


SETS = {
    "mnist": DataSet("mnist.npz", LEVEL),
    "fashion_mnist": DataSet("fashion_mnist.npz", LEVEL),
    "adult": DataSet("adult_a9a.npz", LEVEL),
    "higgs": DataSet("higgs_subset_18k.npz", NUMBERS),
    "susy": DataSet("susy_subset_30k.npz", NUMBERS),
    "protein": DataSet("protein_val_2871.npz", LEVEL),
    "kddcup99": DataSet("kddcup99_10pct.npz", NUMBERS),
    "shuttle": DataSet("shuttle.npz", NUMBERS),
    "skin": DataSet("skin_segmentation.npz", LEVEL),
    "bank": DataSet("bank_marketing.csv", TABLE),
    "shoppers": DataSet("online_shoppers.csv", TABLE, target="Revenue"),
    "ag_news": DataSet("ag_news_8k.csv", TEXT, target="label", words="text"),
    "pcmac": DataSet("news20_pcmac.npz", TEXT),
}
SIZES = (1_500, 6_000, 20_000)
PER_CLASS = (1, 2, 5, 20, 100)
AT_RANDOM = (20, 100, 500, 2_000)

Rows = np.ndarray | sparse.csr_matrix


def numbers_of(values: list[str]) -> np.ndarray | None:
    """A column as numbers, TRUE and FALSE as 1 and 0; None where it holds other text."""
    if set(values) <= {"TRUE", "FALSE"}:
        return np.array([value == "TRUE" for value in values], np.float32)
    try:
        return np.array(values, np.float32)
    except ValueError:
        return None


def one_hot(columns: dict[str, list[str]]) -> np.ndarray:
    """Numbers as they are, then one column of 0 and 1 for each value of each text column."""
    found = {name: numbers_of(values) for name, values in columns.items()}
    parts = [values[:, None] for values in found.values() if values is not None]
    for name, values in columns.items():
        if found[name] is None:
            kinds, codes = np.unique(values, return_inverse=True)
            parts.append((codes[:, None] == np.arange(len(kinds))).astype(np.float32))
    return np.hstack(parts)


def tf_idf(documents: list[str]) -> sparse.csr_matrix:
    """Rows of unit length."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(min_df=2, stop_words="english", dtype=np.float32)
    return sparse.csr_matrix(vectors.fit_transform(documents))


def read(folder: Path, name: str) -> tuple[Rows, np.ndarray]:
    """The whole set: rows, and classes as they are in the file."""
    about = SETS[name]
    path = folder / about.file
    if path.suffix == ".npz":
        with np.load(path) as data:
            rows, truth = data["X"], data["y"]
        return (sparse.csr_matrix(rows) if about.kind == TEXT else rows), truth
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    columns = {
        key: list(values) for key, values in zip(head, zip(*lines, strict=True), strict=True)
    }
    truth = np.array(columns.pop(about.target))
    return (tf_idf(columns[about.words]) if about.words else one_hot(columns)), truth


def first_rows(folder: Path, name: str, most: int = MOST_ROWS) -> tuple[Rows, np.ndarray]:
    """At most ``most`` rows in random order, and their classes."""
    part = folder / f"{name}.part.npz"
    if part.exists() and most <= MOST_ROWS:
        with np.load(part) as data:
            if "X" in data:
                return data["X"], data["y"]
            parts = data["values"], data["columns"], data["starts"]
            return sparse.csr_matrix(parts, shape=tuple(data["shape"])), data["y"]
    rows, truth = read(folder, name)
    chosen = np.random.default_rng(0).permutation(len(truth))[:most]
    return rows[chosen], truth[chosen]


def save_part(folder: Path, name: str, target: Path) -> None:
    """Write the first rows of a set, for a machine to which the whole would be slow to send."""
    rows, truth = first_rows(folder, name)
    path = target / f"{name}.part.npz"
    if sparse.issparse(rows):
        shape = np.array(rows.shape)
        parts = {"values": rows.data, "columns": rows.indices, "starts": rows.indptr}
        np.savez_compressed(path, y=truth, shape=shape, **parts)
    else:
        np.savez_compressed(path, X=rows, y=truth)


def sizes_of(total: int, sizes: tuple[int, ...] = SIZES) -> list[int]:
    """Sizes at which a set of ``total`` rows is measured."""
    ordered = sorted(sizes)
    return [size for at, size in enumerate(ordered) if at == 0 or ordered[at - 1] < total]


def load(folder: Path, name: str, size: int) -> tuple[Rows, np.ndarray]:
    """A part: rows as float32 in random order, and classes from 0 on."""
    rows, truth = first_rows(folder, name, max(size, MOST_ROWS))
    rows, truth = rows[:size].astype(np.float32), truth[:size]
    _, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    several = counts[codes] >= 2
    return rows[several], np.unique(codes[several], return_inverse=True)[1]


def draw_per_class(truth: np.ndarray, each: int, seed: int) -> np.ndarray:
    """Labels of ``each`` random rows a class (at most half of a class), -1 elsewhere."""
    rng = np.random.default_rng(1000 + seed)
    labels = np.full(len(truth), -1)
    for code in range(truth.max() + 1):
        members = np.flatnonzero(truth == code)
        size = min(each, max(1, len(members) // 2))
        labels[rng.choice(members, size, replace=False)] = code
    return labels


def draw_at_random(truth: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Labels of ``count`` rows drawn from all, again until two classes occur; -1 elsewhere."""
    rng = np.random.default_rng(5000 + seed)
    while True:
        chosen = rng.choice(len(truth), count, replace=False)
        if len(np.unique(truth[chosen])) >= 2:
            labels = np.full(len(truth), -1)
            labels[chosen] = truth[chosen]
            return labels


DRAWS = {"class": draw_per_class, "random": draw_at_random}
"""How labels are drawn: so many of each class, or so many of all rows."""
