"""Scales of features, chosen from a sample of rows; words beside a table have their own.

============== ====================================================================================
``"none"``     as they are (only centred where arithmetic would lose digits)
``"standard"`` mean 0 and standard deviation 1
``"minmax"``   from 0 to 1
``"log"``      a logarithm of the distance from the median, then standard deviation 1: for features
               with a few huge values
``"unit"``     rows of length 1: for embeddings, whose angles mean something and lengths little
``"text"``     rows of words: see :mod:`.project`
``"table"``    each feature by its kind: see :mod:`.recognise`
``"auto"``     "text" for sparse rows of words, "unit" for embeddings, "none" where features share
               one scale, "table" elsewhere
============== ====================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, is_torch, largest_size, like, namespace, to_dense
from biglp._core.errors import ParameterError
from biglp._core.size import Size
from biglp._transforms.base import Chain, RowTransform
from biglp._transforms.project import TEXT_ROWS, Project, unit_length, word_weights
from biglp._transforms.recognise import (
    COUNTED,
    LONE_FACTOR,
    angles_count,
    feature_statistics,
    has_long_tail,
    inverse,
    is_embedding,
    is_table,
    is_text,
    log_scales,
    one_hot_groups,
    signed_log,
    two_valued,
)

SCALINGS = ("auto", "none", "standard", "minmax", "log", "unit", "text", "table")
CENTRING_RATIO = 3.0
"""A feature whose mean is more than this many spreads from zero would lose its digits in
‖x‖² − 2x·l + ‖l‖² and is centred even when no scaling is asked for: float32 keeps 7 of them, and
the answer wants 5."""
SMALLEST_DIFFERENCE = 1e4
"""Rows whose difference is this many times smaller than themselves can still be told apart."""


@dataclass(frozen=True)
class Scale(RowTransform):
    """Features become ``(x − offset) · factor``; ``None`` leaves a step out.

    With ``final`` they become ``sign(u) · log(1 + |u|) · final`` of that u: for small values a
    line, for large ones a logarithm, so that a few huge values do not decide all distances. Where
    there is ``logged``, only these features do. With ``unit`` rows have length 1 in the end.
    """

    name: ClassVar[str] = "scale"
    learnt: ClassVar[tuple[str, ...]] = (
        "kind", "unit", "used", "offset", "factor", "logged", "final", "counts",
    )  # fmt: skip
    embeds: ClassVar[bool] = False
    kind: str = "none"  # of SCALINGS; once it is learnt, what "auto" took the rows for
    device: str = "cpu"  # where a sample is looked at
    used: np.ndarray | None = None  # features that are used at all; the other arrays are about them
    offset: np.ndarray | None = None  # (m,), as factor and final
    factor: np.ndarray | None = None
    logged: np.ndarray | None = None  # where the logarithm is taken; everywhere by default.  (m,)
    final: np.ndarray | None = None
    unit: bool = False
    counts: np.ndarray | None = None  # features of each kind, as recognise.COUNTED names them

    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        """Choose the scale of each feature from a sample of rows.

        ``"auto"`` knows rows of words and embeddings, leaves features alone when they already share
        one scale (pixels, indicators), and takes each feature by its kind otherwise. Sparse rows
        are never centred, because that would fill them in.
        """
        kind = self.kind
        if kind == "text" or (kind == "auto" and is_text(sample)):
            words, weights, counts = word_weights(sample)
            if not counts:
                largest = largest_size(sample) * weights.max(initial=1.0)
                weights = weights * _into_range(largest, len(weights), sample.dtype)
            final, factor = (weights, None) if counts else (None, weights)
            return replace(self, kind="text", used=words, factor=factor, final=final, unit=True)
        dense = not sparse.issparse(sample)
        statistics = feature_statistics(sample, self.device)
        low, high, mean, spread = statistics
        if kind == "auto":
            if is_embedding(sample, statistics):
                kind = "unit" if angles_count(sample) else "none"
            else:
                kind = "table" if is_table(sample, statistics) else "none"
        learnt = replace(self, kind=kind)
        if kind in ("none", "unit"):
            far = np.abs(mean) > CENTRING_RATIO * spread
            # Centring is a translation: distances do not change, only their rounding does.
            centred = kind == "none" and dense and far.any()
            largest = float(max(np.abs(low).max(), np.abs(high).max()))
            common = _into_range(largest, len(low), sample.dtype)
            return replace(
                learnt,
                offset=np.where(far, mean, 0.0) if centred else None,
                factor=None if common == 1.0 else np.full(len(low), common),
                unit=kind == "unit",
            )
        if kind == "log":
            middle, factor, final = log_scales(sample, spread)
            return replace(learnt, offset=middle if dense else None, factor=factor, final=final)
        if kind == "minmax":
            return replace(learnt, offset=low if dense else None, factor=inverse(high - low))
        if kind == "standard":
            return replace(learnt, offset=mean if dense else None, factor=inverse(spread))
        if kind != "table":
            known = ", ".join(SCALINGS)
            raise ParameterError(f"scaling={kind!r} is not known; use one of {known}.")
        # Each column of a table by its kind.
        two = two_valued(sample, statistics)
        varies = spread > 0
        tails = has_long_tail(sample, statistics) & varies & ~two
        offset = np.where(two, low, mean)
        factor = inverse(np.where(two, high - low, spread))
        final = None
        if tails.any():
            middle, squeeze, stretch = log_scales(sample[:, tails], spread[tails])
            offset[tails], factor[tails] = middle, squeeze
            final = np.ones(len(low))
            final[tails] = stretch
        groups = one_hot_groups(sample, two, offset)
        factor[two & (groups < 0)] *= LONE_FACTOR
        numbers = varies & ~two & ~tails
        kinds = (numbers.sum(), tails.sum(), two.sum(), groups.max() + 1, (~varies).sum())
        return replace(
            learnt,
            offset=offset if dense else None,
            factor=factor,
            logged=tails if tails.any() else None,
            final=final,
            counts=np.array(kinds),
        )

    def apply(self, rows: Rows) -> Rows:
        """Scale a block of rows (dense or CSR); the identity returns the rows untouched."""
        if self.kind == "text" and isinstance(rows, np.ndarray):  # as CSR rows, to the same bits
            rows = sparse.csr_matrix(rows)
        if self.used is not None and sparse.issparse(rows):
            # SciPy's own choice of columns looks at every column, of which there may be a million.
            ranks = self._ranks[np.minimum(rows.indices, len(self._ranks) - 1)]
            known = ranks >= 0
            ends = np.concatenate([[0], np.cumsum(known)])[rows.indptr]
            shape = rows.shape[0], len(self.used)
            rows = type(rows)((rows.data[known], ranks[known], ends), shape=shape)
        elif self.used is not None:
            rows = rows[:, self.used]
        if self.offset is not None:
            if sparse.issparse(rows):  # learnt from dense rows: zeros become something else
                rows = rows.toarray()
            rows = rows - like(rows, self.offset)
        if self.factor is not None:
            rows = _times(rows, self.factor)
        if self.final is None:
            pass
        elif self.logged is None:
            rows = _times(signed_log(rows), self.final)
        elif sparse.issparse(rows):
            chosen = self.logged[rows.indices]
            rows = rows.copy()
            rows.data[chosen] = signed_log(rows.data[chosen])
            rows = _times(rows, self.final)
        else:
            # A table always has factors, so that these rows are a copy already.
            columns = np.flatnonzero(self.logged)
            rows[:, columns] = signed_log(rows[:, columns]) * like(rows, self.final[columns])
        return unit_length(rows) if self.unit else rows

    @cached_property
    def _ranks(self) -> np.ndarray:
        """Rank among those used of each feature up to the last of them; −1: it is not used."""
        assert self.used is not None
        ranks = np.full(int(self.used[-1]) + 2, -1, dtype=np.int32)
        ranks[self.used] = np.arange(len(self.used))
        return ranks

    def width(self, n_features: int) -> int:
        return n_features if self.used is None else len(self.used)

    @property
    def keeps_sparse(self) -> bool:
        return self.offset is None

    @property
    def changes_rows(self) -> bool:
        steps = (self.used, self.offset, self.factor, self.final)
        return self.unit or any(step is not None for step in steps)

    def describe(self) -> dict[str, Any]:
        report: dict[str, Any] = {"scaling": self.kind}
        if self.counts is not None:
            report["columns"] = dict(zip(COUNTED, self.counts.tolist(), strict=True))
        return report


@dataclass(frozen=True)
class Parts(RowTransform):
    """Columns of a table by their kinds; the words beside them become a few directions.

    Two texts that have nothing in common are as far apart as two different categories: directions
    of words have unit length.
    """

    name: ClassVar[str] = "parts"
    split: int = 0  # first feature that is a word
    kind: str = "auto"  # the scaling that was asked for; it is about the columns
    seed: int = 0
    table: Scale = field(default_factory=Scale)
    words: Chain = field(default_factory=Chain)

    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        counts = sample[:, self.split :]
        words = Chain([Scale("text").fit(counts)]).then(
            Project(seed=self.seed, words=True, unit=True),
            counts[:: max(counts.shape[0] // TEXT_ROWS, 1)],
        )
        kind = "table" if self.kind in ("auto", "text") else self.kind
        return replace(self, table=Scale(kind).fit(to_dense(sample[:, : self.split])), words=words)

    def apply(self, rows: Rows) -> Rows:
        columns = self.table.apply(to_dense(rows[:, : self.split]))
        return np.hstack([columns, self.words.apply(rows[:, self.split :])])

    def width(self, n_features: int) -> int:
        return self.split + self.words.width(n_features - self.split)

    def describe(self) -> dict[str, Any]:
        return {**self.table.describe(), **self.words.describe(), "scaling": "mixed"}

    def state(self) -> dict[str, np.ndarray]:
        return {
            "split": np.array(self.split),
            **{f"table.{name}": array for name, array in self.table.state().items()},
            **{f"words.{name}": array for name, array in self.words.state().items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        of: dict[str, dict[str, np.ndarray]] = {"table": {}, "words": {}}
        for key, array in state.items():
            part, _, name = key.partition(".")
            if name:
                of[part][name] = array
        table, words = Scale.from_state(of["table"]), Chain.from_state(of["words"])
        return cls(int(state["split"]), table=table, words=words)


def _times(rows: Rows, factor: np.ndarray) -> Rows:
    """Each feature times its factor, which denormal numbers would make larger than any number."""
    largest = namespace(rows).finfo(rows.dtype).max if is_torch(rows) else np.finfo(rows.dtype).max
    factor = like(rows, np.minimum(factor, float(largest)))
    if not sparse.issparse(rows):
        return rows * factor
    scaled = rows.copy()
    scaled.data *= factor[rows.indices]
    return scaled


def _into_range(size: float, n_features: int, dtype: np.dtype[Any]) -> float:
    """What numbers up to a size are to be multiplied by: 1 but for very large and small ones.

    Their squared distances would overflow, or vanish; one common factor keeps their ratios.
    """
    limits = np.finfo(dtype)
    largest = np.sqrt(limits.max) / (4.0 * n_features)
    smallest = SMALLEST_DIFFERENCE * np.sqrt(limits.tiny)
    in_range = size == 0 or smallest <= size <= largest
    return 1.0 if in_range else 1.0 / min(max(size, float(limits.tiny)), float(limits.max))
