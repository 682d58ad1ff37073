"""What a member of the committee is: what it learns, how, and what it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from biglp._algebra.spreading import LabelledRows
from biglp._algebra.sums import apply_mixing
from biglp._core.arrays import Array, Rows, to_numpy
from biglp._core.size import Cost, Size
from biglp._graph.features import float64_features
from biglp._labels.labels import Labels
from biglp._learn.base import Problem, Standard, centre_and_spread, part_of_labels
from biglp._learn.committee.starting_weights import ROWS, Starts
from biglp._transforms.scale import Parts

DECISIVE = 4.0
"""Usual size of the logits of label spreading from which on a graph is in clusters: a label reaches
rows of its own e⁴ times as well as others. On tables of overlapping classes it is below 1.5."""
PLENTY = 20
"""Labels a class from which on a member starts with the second of its weights."""


class MemberModel:
    """What a member has learnt: arrays that give logits for any block of rows.

    It has ``coefficients``, or ``slopes`` and ``intercepts``, whose products the answer takes for
    all models at once, or else its own :meth:`of`.
    """

    # (p, c): features times this are class densities, of which logarithms are taken.
    coefficients: np.ndarray | None = None
    # (m, c) and (c,): rows times slopes, plus intercepts, are logits.
    slopes: np.ndarray | None = None
    intercepts: np.ndarray | None = None
    expected: int = 0  # rows that will be asked about, as far as is known
    # What asking it about a row takes, where that is more than a small product.
    row_seconds: float = 0.0

    def of(self, rows: Rows) -> Array:
        """Logits of prepared rows.  (b, m) → (b, c)."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        """The arrays it is made of."""
        own = fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in own if field.init}

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the arrays travel: other processes find their own way to answer."""
        return type(self), tuple(self.state().values())


@dataclass(frozen=True)
class LinearModel(MemberModel):
    """A linear model of prepared rows: logits = rows·slopes + intercepts."""

    # (m, c) and (c,)
    slopes: np.ndarray
    intercepts: np.ndarray

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
    # What a larger effort would take more of: its name, how many were taken and of how many, and
    # the seconds that the others cost
    left_out: tuple[str, int, int, float] | None = None


@dataclass(frozen=True)
class TrainingSet:
    """What the members learn from."""

    problem: Problem[Labels]  # the graph with its labels
    part: Labels  # the labels, or a part of many
    labelled: LabelledRows  # mixed, normalised features of the rows of ``part``, and their labels
    rows: Rows  # (l, m): the same rows as they are
    # Features before mixing, and rows, of a random sample of all rows
    sample_features: Rows
    sample_rows: Rows
    targets: np.ndarray  # (l, c): w·Y of the labelled rows
    log_counts: np.ndarray  # (c,): logarithm of the classes' numbers of labels, centred
    lone: np.ndarray  # (l,): whether a labelled row is the only one of its class
    # Centre of the features over all rows, and their common spread: a few labels do not tell them.
    # Features are on the scale on which they count alike, or as much as they should: principal
    # components, and columns of 0 and 1 that are mostly 0, must not be made equally large, because
    # most of them are noise then.
    standard: Standard
    kind: str  # one of ``ROWS``

    @classmethod
    def of(cls, problem: Problem[Labels]) -> TrainingSet:
        """Fetch the labelled rows and the sample; no sweep."""
        graph, chain = problem.graph, problem.graph.source.chain
        if chain.scaling == "text":
            kind = "text"
        elif chain.unit:
            kind = "embedding"
        else:  # beside directions of words, columns keep their meaning
            embedded = chain.embeds and not isinstance(chain.transforms[-1], Parts)
            kind = "pixels" if embedded else "table"
        most, seed = problem.system.most_labelled, problem.settings.seed
        part, sample = part_of_labels(problem.labels, most, seed), problem.sample_rows
        sample_rows = to_numpy(sample)
        exact = sample_rows.astype(np.float64, copy=False)
        standard = centre_and_spread(exact, one_scale=True)
        rows = graph.take(part.rows)
        features = float64_features(graph.features.of_rows(rows))
        given = part.given
        labelled = LabelledRows(apply_mixing(features, problem.sums.mixing), part.codes, given)
        targets = labelled.targets(problem.labels.n_classes)
        log_counts = np.log(np.maximum(targets.sum(axis=0), np.finfo(np.float64).tiny))
        return cls(
            problem=problem,
            part=part,
            labelled=labelled,
            rows=to_numpy(rows),
            sample_features=to_numpy(graph.features.of_rows(sample)),
            sample_rows=sample_rows,
            targets=targets,
            log_counts=log_counts - log_counts.mean(),
            lone=np.bincount(part.codes)[part.codes] < 2,
            standard=standard,
            kind=kind,
        )


def usual_size(logits: np.ndarray) -> float:
    """Median over rows of the largest centred logit: a size that few wild rows do not change."""
    centred = logits - logits.mean(axis=1, keepdims=True)
    size = float(np.median(np.abs(centred).max(axis=1)))
    return size if size > 0 else 1.0


class Member(ABC):
    """One of those who are asked."""

    name: str  # its name in the report
    words: ClassVar[str] = ""  # what it is, for people
    # Weights w₀ where labels are too few to tell, by kind of rows; they are added. Without any,
    # those of its name.
    starts: tuple[Starts, ...] = ()
    least: float = 0.0  # weight that it keeps, however badly it predicts
    # Weight below which it is not worth the time it would take of every row, with an effort that
    # is balanced
    worth: float = 0.0
    says_graph: ClassVar[bool] = False  # whether it says what the graph says
    # Whether its logits hold the shares of the classes among the labels, as those of a model of
    # the labelled rows alone do. They are taken off: the class prior has a weight of its own.
    says_shares: ClassVar[bool] = False
    model: ClassVar[type[MemberModel]]  # what it learns
    kinds: ClassVar[tuple[str, ...]] = ROWS  # kinds of rows on which it is worth asking

    @classmethod
    def candidates(cls, evidence: TrainingSet) -> list[Self]:
        """The members of this kind that are worth asking here."""
        return [cls()] if evidence.kind in cls.kinds else []

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """What it takes."""
        return Cost()

    @abstractmethod
    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Learn from the evidence."""
