"""What a member of the committee is: what it learns, how, and what it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from biglp._algebra.spreading import LabelledRows
from biglp._core.arrays import Array, Rows, to_numpy
from biglp._core.size import Cost, Size
from biglp._graph.graph import float64_features
from biglp._labels.labels import Labels
from biglp._learn.base import Problem, Standard, centre_and_spread, to_float64
from biglp._learn.committee.starting_weights import STARTING_WEIGHTS, Starts
from biglp._transforms.scale import Parts

DECISIVE = 4.0
"""Usual size of the logits of label spreading from which on a graph is in clusters: a label reaches
rows of its own e⁴ times as well as others. On tables of overlapping classes it is below 1.5."""
PLENTY = 20
"""Labels a class from which on a member starts with the second of its weights."""


@dataclass(frozen=True)
class Asked:
    """A block of rows on which models are asked."""

    rows: Rows  # (b, m): prepared rows
    # (b, c): products that several models need are taken once for all of them: each takes its next
    # columns from here
    densities: Iterator[Array]
    lines: Iterator[Array]


class MemberModel(ABC):
    """What a member has learnt: arrays that give logits for any block of rows."""

    # (p, c): features times this are the next of ``Asked.densities``.
    coefficients: np.ndarray | None = None
    # (m, c) and (c,): rows times slopes, plus intercepts, are the next of ``Asked.lines``.
    slopes: np.ndarray | None = None
    intercepts: np.ndarray | None = None

    @abstractmethod
    def logits(self, asked: Asked) -> Array:
        """Logits of a block of rows.  (b, c)."""

    @property
    def row_seconds(self) -> float:
        """What asking it about a row takes, where that is more than a small product."""
        return 0.0

    def expect(self, n_rows: int) -> None:  # noqa: B027  most have nothing to prepare
        """Be told how many rows will be asked about."""

    def state(self) -> dict[str, np.ndarray]:
        """The arrays it is made of."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """Rebuild from :meth:`state`."""
        return cls(**state)


@dataclass(frozen=True)
class LinearModel(MemberModel):
    """A linear model of prepared rows: logits = rows·slopes + intercepts."""

    # (m, c) and (c,)
    slopes: np.ndarray
    intercepts: np.ndarray

    def logits(self, asked: Asked) -> Array:
        """Take the product that is ready."""
        return next(asked.lines)

    def of(self, rows: Rows) -> np.ndarray:
        """Logits of rows, in float64.  (b, m) → (b, c)."""
        return np.asarray(rows @ self.slopes + self.intercepts)


@dataclass(frozen=True)
class MemberFit:
    """What was learnt, and what it says of rows from which its weight is found."""

    model: MemberModel
    # (l, c): logits of each labelled row without its own label; NaN where it was its class's only
    # one
    held_out: np.ndarray
    sample: np.ndarray  # (b, c): logits of a sample of all rows
    n_iter: int = 1  # iterations of the solver


@dataclass(frozen=True)
class TrainingSet:
    """What the members learn from."""

    problem: Problem[Labels]  # the graph with its labels
    part: Labels  # the labels, or a part of many
    labelled: LabelledRows  # mixed, normalised features of the rows of ``part``
    rows: Rows  # (l, m): the same rows as they are
    # Features before mixing, and rows, of a random sample of all rows
    sample_features: Rows
    sample_rows: Rows
    log_prior: np.ndarray  # (c,): logarithm of the class prior, centred
    targets: np.ndarray  # (l, c): w·Y of the labelled rows
    lone: np.ndarray  # (l,): whether a labelled row is the only one of its class
    kind: str  # one of ``ROWS``

    @classmethod
    def of(cls, problem: Problem[Labels], log_prior: np.ndarray) -> TrainingSet:
        """Fetch the labelled rows and the sample; no sweep."""
        graph, chain = problem.graph, problem.graph.source.chain
        if chain.scaling == "text":
            kind = "text"
        elif chain.unit:
            kind = "embedding"
        else:  # beside directions of words, columns keep their meaning
            embedded = chain.embeds and not isinstance(chain.transforms[-1], Parts)
            kind = "pixels" if embedded else "table"
        part = problem.part_of_labels(problem.system.most_labelled)
        rows = graph.take(part.rows)
        features = problem.sums.mix(float64_features(graph.features.of_rows(rows)))
        labelled = LabelledRows(features, part.codes, part.given)
        return cls(
            problem=problem,
            part=part,
            labelled=labelled,
            rows=to_numpy(rows),
            sample_features=to_numpy(problem.sample_features),
            sample_rows=to_numpy(problem.sample_rows),
            log_prior=log_prior,
            targets=labelled.targets(len(log_prior)),
            lone=np.bincount(part.codes)[part.codes] < 2,
            kind=kind,
        )

    @cached_property
    def standard(self) -> Standard:
        """Centre of the features over all rows, and their common spread.

        A few labels do not tell them. Features are on the scale on which they count alike, or as
        much as they should: principal components, and columns of 0 and 1 that are mostly 0, must
        not be made equally large, because most of them are noise then.
        """
        return centre_and_spread(to_float64(self.sample_rows), one_scale=True)

    @cached_property
    def log_counts(self) -> np.ndarray:
        """Logarithm of the classes' numbers of labels, centred.  (c,)."""
        logs = np.log(np.maximum(self.targets.sum(axis=0), np.finfo(np.float64).tiny))
        return np.asarray(logs - logs.mean())

    def between(self, few: float, many: float) -> float:
        """A weight between that for one label a class and that for plenty, on a log scale."""
        each = max(len(self.problem.labels.rows) / len(self.log_prior), 1.0)
        plenty = min(np.log(each) / np.log(PLENTY), 1.0)
        return float(few + plenty * (many - few))


def usual_size(logits: np.ndarray) -> float:
    """Median over rows of the largest centred logit: a size that few wild rows do not change."""
    centred = logits - logits.mean(axis=1, keepdims=True)
    size = float(np.median(np.abs(centred).max(axis=1)))
    return size if size > 0 else 1.0


class Member(ABC):
    """One of those who are asked."""

    name: str  # its name in the report
    words: ClassVar[str] = ""  # what it is, for people
    # Weight w₀ where labels are too few to tell, by kind of rows
    starts: ClassVar[Starts | None] = None
    least: float = 0.0  # weight that it keeps, however badly it predicts
    # Weight below which it is not worth the time it would take of every row, with an effort that
    # is balanced
    worth: float = 0.0
    says_graph: ClassVar[bool] = False  # whether it says what the graph says
    # Whether its logits hold the shares of the classes among the labels, as those of a model of
    # the labelled rows alone do. They are taken off: the class prior has a weight of its own.
    says_shares: ClassVar[bool] = False
    model: ClassVar[type[MemberModel]]  # what it learns

    @classmethod
    def candidates(cls, evidence: TrainingSet) -> list[Self]:
        """The members of this kind that are worth asking here."""
        return [cls()]

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """What it takes."""
        return Cost()

    @classmethod
    def left_out(cls, evidence: TrainingSet) -> list[dict[str, Any]]:
        """What a larger effort would add to it: lines of the report."""
        return []

    def start(self, evidence: TrainingSet) -> float:
        """Weight w₀ here."""
        return evidence.between(*(self.starts or STARTING_WEIGHTS[self.name])[evidence.kind])

    @abstractmethod
    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Learn from the evidence."""
