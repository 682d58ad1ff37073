"""The numbers that the paper reports, read from ``paper.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class PaperTable:
    """Accuracies of one data set.

    Attributes
    ----------
    name, number : str
        Data set, and where the table stands.
    samples, features : int
    lp_kernel : {"linear", "rbf"}
        Kernel of the "LP" column.
    percent : tuple of float
        Labelled share of all samples, one a line.
    accuracy : tuple of dict of str to float
        Accuracy in percent by column, one a line.
    """

    name: str
    number: str
    samples: int
    features: int
    lp_kernel: str
    percent: tuple[float, ...]
    accuracy: tuple[dict[str, float], ...]

    @property
    def labels(self) -> tuple[int, ...]:
        """Labelled samples of each line.

        "0.001 %" is taken of all samples (16 of mnist8m's 1,648,890), as the paper words it; taken
        of the 80 % that are not test samples they would be a fifth fewer.
        """
        return tuple(int(share * self.samples / 100 + 1e-9) for share in self.percent)

    def best(self, line: int) -> tuple[str, float]:
        """Best column of a line, and its accuracy."""
        return max(self.accuracy[line].items(), key=lambda item: item[1])


@cache
def numbers() -> dict[str, Any]:
    """Everything in ``paper.toml``."""
    text = files("biglp._experiments").joinpath("paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def tables() -> dict[str, PaperTable]:
    """Accuracy tables by data set."""
    found, columns = {}, numbers()["columns"]
    for entry in numbers()["tables"]:
        lines = tuple(dict(zip(columns, line, strict=True)) for line in entry["accuracy"])
        facts = {**entry, "percent": tuple(entry["percent"]), "accuracy": lines}
        found[entry["name"]] = PaperTable(**facts)
    return found


def column_name(column: str) -> str:
    """Name of a column for people."""
    method, _, k = column.partition(" ")
    words = {
        "glnp": "GLNP",
        "nystrom-random": "Nyström (random)",
        "nystrom-kmeans": "Nyström (k-means)",
        "knn": "5-NN",
        "lp": "LP",
    }
    return words[method] + (f", k = {k}" if k else "")
