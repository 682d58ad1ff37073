"""What a method learns from, and what an answer is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from scipy import sparse

from biglp._algebra.balance import given_prior
from biglp._algebra.spreading import LabelledRows, iterate
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import System
from biglp._compiled import largest_column
from biglp._core.arrays import Array, Rows, is_torch, namespace, to_numpy
from biglp._core.settings import AnswerSettings
from biglp._core.size import Cost, Size
from biglp._graph.graph import Graph
from biglp._labels.labels import Labels, OwnLabels
from biglp._labels.targets import Targets

FEW_CLASSES = 16
"""Classes up to which a card counts each by itself faster than all at once."""
SAMPLE = 2000
"""Rows that tell the usual size of each member's logits, and whether some are unlike all labels."""
AnyLabels = TypeVar("AnyLabels", Labels, Targets)


def part_of_labels(labels: AnyLabels, most: int, seed: int) -> AnyLabels:
    """The labels, or a random part of them; smaller parts are parts of the larger ones."""
    if len(labels.rows) <= most:
        return labels
    order = np.random.default_rng(seed).permutation(len(labels.rows))
    return labels.take(np.sort(order[:most]))


def sample_indices(n_rows: int, size: int, seed: int) -> np.ndarray:
    """Sorted indices of ``size`` distinct rows, without building a list of all of them."""
    if size >= n_rows:
        return np.arange(n_rows)
    chosen = np.random.default_rng(seed).choice(n_rows, size=size, replace=False, shuffle=False)
    return np.sort(chosen)


def among(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Whether each row is one of those known, which increase; ``np.isin`` would copy them."""
    if not len(known):
        return np.zeros(len(rows), dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, rows), len(known) - 1)] == rows)


@dataclass(frozen=True)
class View:
    """One view of the rows, such as the columns of a table or an embedding of its texts."""

    graph: Graph  # over the prepared rows of the view
    sums: GramSums  # over all of them, for the labels of the problem

    def mixed_features(self, rows: np.ndarray) -> Any:
        """Mixed, normalised features of chosen rows, by their numbers.  (l,) → (l, r)."""
        return self.sums.mix(self.graph.features_of(rows))


@dataclass(frozen=True)
class Problem(Generic[AnyLabels]):
    """Graphs with labels on them: what a method learns from."""

    views: tuple[View, ...]
    labels: AnyLabels
    settings: AnswerSettings

    # Those of the first view
    graph: Graph = field(init=False, repr=False)
    sums: GramSums = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Have the first view at hand."""
        self.__dict__.update(graph=self.views[0].graph, sums=self.views[0].sums)

    @cached_property
    def system(self) -> System:
        """The Gram matrix, ready for any α."""
        few = self.settings.few_alphas
        return self.graph.system(self.sums, len(self.labels.rows), few_alphas=few)

    @cached_property
    def sample_rows(self) -> Rows:
        """A random sample of all rows, prepared.  (b, m)."""
        return self.graph.sample_rows(SAMPLE)

    def labelled(self, part: Labels) -> LabelledRows:
        """Mixed, normalised features of labelled rows, for leave-one-out."""
        return LabelledRows(self.views[0].mixed_features(part.rows), part.codes, part.given)

    def spread(self, alpha: float) -> tuple[np.ndarray, int]:
        """Label spreading by the chosen solver: coefficients C and the iterations used."""
        settings, radius = self.settings, self.system.radius
        if settings.solver == "closed_form":
            return self.system.solved(alpha), 1
        return iterate(self.sums, alpha, radius, max_iter=settings.max_iter, tol=settings.tol)

    def with_views(self, graph: Graph, sums: GramSums) -> Problem[AnyLabels]:
        """The same labels on another graph over the same rows."""
        return replace(self, views=(View(graph, sums),))

    def with_labels(self, labels: AnyLabels, targets: Iterable[np.ndarray]) -> Problem[AnyLabels]:
        """The same graphs with other labels; ``targets`` is their B, for each view."""
        both = zip(self.views, targets, strict=True)
        views = [replace(view, sums=view.sums.with_labels(b, labels.counts)) for view, b in both]
        return replace(self, labels=labels, views=tuple(views))

    def with_graphs(self, graphs: Iterable[Graph]) -> Problem[AnyLabels]:
        """The same problem with graphs that visit their rows in another way."""
        both = zip(self.views, graphs, strict=True)
        return replace(self, views=tuple(replace(view, graph=graph) for view, graph in both))


class Predictor(ABC):
    """Turns a block of rows into what is written about them."""

    kind: ClassVar[str]  # its name in model files
    needs_rows: bool = False  # whether it looks at prepared rows beside their features

    def expect(self, n_rows: int) -> None:  # noqa: B027  most have nothing to prepare
        """Be told how many rows will be asked about."""

    @abstractmethod
    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """What is said of a block of rows.

        ``features``: (b, p): normalised features; ``rows``: (b, m): prepared rows, where they are
        needed; ``own``: the labels of the block's rows, where these are training rows;
        ``outputs``: (b, c); ``n_unreached``: rows that no label reaches.
        """

    def finish(self, outputs: Array) -> Array:
        """What is written of these outputs."""
        return outputs

    def count(self, answers: Array) -> dict[int, int]:
        """Rows of each class code that occurs, where answers are class probabilities."""
        called, n_classes = largest_column(answers), answers.shape[1]
        if is_torch(called) and n_classes <= FEW_CLASSES:  # all rows add to one of a few places
            counted = np.array([int((called == code).sum()) for code in range(n_classes)])
        elif n_classes == 2:  # other threads go on meanwhile, as they do not beside a bincount
            n_second = int(np.count_nonzero(called))
            counted = np.array([len(called) - n_second, n_second])
        else:
            counted = to_numpy(namespace(answers).bincount(called))
        codes = np.flatnonzero(counted)
        return dict(zip(codes.tolist(), counted[codes].tolist(), strict=True))

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`from_state` rebuilds the answer: those it is made of."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Predictor:
        """Rebuild from :meth:`state`."""
        return cls(**state)


@dataclass(frozen=True)
class HeldOut:
    """What is said of labelled rows without their own labels."""

    rows: np.ndarray  # (l,): row numbers, increasing: the labelled rows, or a random part of many
    # (l, c): class probabilities; NaN where a row was its class's only one, or nothing could be
    # held out
    shares: np.ndarray


@dataclass(frozen=True)
class LearnResult:
    """The answer that was learnt, and what was found on the way."""

    answer: Predictor
    report: dict[str, Any]  # what was chosen
    n_iter: int = 1  # iterations of the solver
    held_out: HeldOut | None = None  # none where the method holds no labels out


EIGENVECTORS = 3
"""r × r numbers that all eigenvectors take besides the sums, with what LAPACK finds them in."""


class Method(ABC):
    """A way to learn an answer."""

    # What rows that no label reaches got, and what to do, for a warning
    unreached: ClassVar[str] = (
        "they got the class prior. Label some of them, or rows near them: suggest() (biglp suggest)"
        " names rows that are worth a label."
    )

    @classmethod
    def check(cls, labels: Any, settings: AnswerSettings, rank: int) -> None:
        """Refuse, before any row is read, what cannot work with these labels."""
        if settings.balance == "given":
            given_prior(settings.class_balance, labels.n_classes)

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """What the method takes beyond the graph."""
        # With more labels than landmarks all eigenvectors are quicker than a factor for each α.
        squares = EIGENVECTORS if size.n_labelled > size.rank else 0
        return Cost(fixed=squares * 8 * size.rank**2, seconds={"learning": 0.2})

    @classmethod
    @abstractmethod
    def learn(cls, problem: Problem[Any]) -> LearnResult:
        """Learn the answer; no sweep over all rows."""


# --------------------------------------------------------------------------------------------------
# Centre and spread of features, for models that learn from the labelled rows alone.


Standard = tuple[np.ndarray, np.ndarray]
"""Centre and spread of every feature."""


def centre_and_spread(rows: Rows, *, one_scale: bool = False) -> Standard:
    """Mean (zero for sparse rows) and spread of each feature; a constant feature has spread 1.

    With ``one_scale`` the features share their mean spread: principal components must not be made
    equally large, because the last of them are mostly noise.
    """
    if sparse.issparse(rows):
        square = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
        mean = np.asarray(rows.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        centre = np.zeros_like(mean)
    else:
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
    if one_scale:
        spread = np.full_like(spread, np.sqrt((spread**2).mean()))
    return centre, np.where(spread > 1e-12 * (spread.max() or 1.0), spread, 1.0)
