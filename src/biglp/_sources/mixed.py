"""Scales of rows that are columns of a table beside words of a text.

Columns are scaled by their kinds, words become a few directions of unit length (:mod:`.text`), and
these stand beside the columns: two texts that have nothing in common are as far apart as two
different categories.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biglp._core.arrays import Rows, to_dense
from biglp._sources.scaling import Scaling

MIXED = "mixed"
_TABLE, _WORDS = "table.", "words."


@dataclass(frozen=True)
class MixedScaling(Scaling):
    """Columns by one scaling, words by another.

    Attributes
    ----------
    table, words : Scaling
    split : int
        First feature that is a word.
    """

    kind: str = MIXED
    table: Scaling = field(default_factory=Scaling)
    words: Scaling = field(default_factory=Scaling)
    split: int = 0

    @property
    def changes_rows(self) -> bool:
        """Always: words become directions."""
        return True

    @property
    def makes_dense(self) -> bool:
        """Always: words become directions."""
        return True

    def n_outputs(self, n_features: int) -> int:
        """Columns and directions."""
        return self.split + self.words.n_outputs(n_features - self.split)

    def apply(self, rows: Rows) -> Rows:
        """Scale a block of CSR rows."""
        columns = self.table.apply(to_dense(rows[:, : self.split]))
        return np.hstack([columns, self.words.apply(rows[:, self.split :])])

    def projected(self, sample: Rows, seed: int, count: int | None = None) -> Scaling:
        """Words have their directions already, and columns keep their meaning."""
        return self

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of both, for a file."""
        return {
            "split": np.array(self.split),
            "table_kind": np.array(self.table.kind),
            **{_TABLE + name: array for name, array in self.table.arrays().items()},
            **{_WORDS + name: array for name, array in self.words.arrays().items()},
        }

    def describe(self) -> dict[str, Any]:
        """What was recognised and is done, for the report."""
        return {**self.table.describe(), **self.words.describe(), "scaling": self.kind}


def mixed_scaling(sample: Rows, split: int, kind: str, seed: int) -> MixedScaling:
    """Choose the scale of columns and words from a sample of rows.

    Parameters
    ----------
    sample : CSR matrix
    split : int
        First feature that is a word.
    kind : str
        What was asked for; it is about the columns.
    seed : int
    """
    counts = sample[:, split:]
    words = Scaling.from_sample(counts, "text").projected(counts, seed)
    columns = "table" if kind in ("auto", "text") else kind
    return MixedScaling(
        table=Scaling.from_sample(to_dense(sample[:, :split]), columns), words=words, split=split
    )


def stored_scaling(kind: str, arrays: dict[str, np.ndarray]) -> Scaling:
    """Rebuild a scaling from its arrays, among which there may be others."""
    if kind != MIXED:
        return Scaling.from_arrays(kind, arrays)

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

    return MixedScaling(
        table=Scaling.from_arrays(str(arrays["table_kind"]), part(_TABLE)),
        words=Scaling.from_arrays("text", part(_WORDS)),
        split=int(arrays["split"]),
    )
