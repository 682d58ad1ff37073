"""Several views of the same rows side by side: words of a text, and what they mean.

Each view has a chain, and a graph of its own (:mod:`biglp._graph.views`); a row holds the features
of all, one view after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.size import Size
from biglp._transforms.base import Chain, RowTransform, below


@dataclass(frozen=True)
class Views(RowTransform):
    """What each chain makes of the rows, side by side."""

    name: ClassVar[str] = "views"
    chains: dict[str, Chain]  # by the name of the view; the first is that of the rows as they are
    widths: tuple[int, ...]  # features of each

    @classmethod
    def of(cls, chains: dict[str, Chain], n_features: int) -> Self:
        return cls(chains, tuple(chain.width(n_features) for chain in chains.values()))

    @property
    def columns(self) -> list[slice]:
        """Where the features of each view are."""
        ends = np.cumsum(self.widths).tolist()
        return [slice(end - width, end) for end, width in zip(ends, self.widths, strict=True)]

    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        return self  # chains are learnt one by one: each from the features of its view

    def apply(self, rows: Rows) -> Rows:
        return np.hstack([chain.apply(rows) for chain in self.chains.values()])

    def width(self, n_features: int) -> int:
        return sum(self.widths)

    def describe(self) -> dict[str, Any]:
        first, *others = self.chains.items()
        return {**first[1].describe(), "views": {name: chain.describe() for name, chain in others}}

    def state(self) -> dict[str, np.ndarray]:
        names = np.array(list(self.chains), dtype=np.str_)
        return {"views": names, "widths": np.array(self.widths)} | {
            f"{name}.{key}": array
            for name, chain in self.chains.items()
            for key, array in chain.state().items()
        }

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        names = state["views"].tolist()
        chains = {name: Chain.from_state(below(state, f"{name}.")) for name in names}
        return cls(chains, tuple(state["widths"].tolist()))
