"""What a method learns from, and what an answer is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from biglp._core.arrays import Array, Rows, is_torch, namespace, to_numpy
from biglp._core.effort import DEFAULT_EFFORT
from biglp._core.products import largest_column
from biglp._core.size import Cost, Size
from biglp._labels.labels import Labels, OwnLabels
from biglp._labels.targets import Targets
from biglp._lowrank.graph import Graph
from biglp._lowrank.sampling import sample_rows
from biglp._propagate.class_balance import given_prior
from biglp._propagate.iteration import iterate
from biglp._propagate.leave_one_out import LabelledRows
from biglp._propagate.own_graph import OwnGraphSums, OwnGraphSystem
from biglp._propagate.sums import GramSums
from biglp._propagate.systems import System, take_apart

FEW_CLASSES = 16
"""Classes up to which a card counts each by itself faster than all at once."""
SAMPLE = 2000
"""Rows that tell the usual size of each member's logits, and whether some are unlike all labels."""
AnyLabels = TypeVar("AnyLabels", Labels, Targets)


@dataclass(frozen=True)
class AnswerSettings:
    """Checked parameters of the answer; the names are those of the estimator.

    Attributes
    ----------
    method : str
        A registered method.
    alpha : float or None
        None: chosen by leave-one-out.
    class_balance : str or array of class priors
    solver : {"closed_form", "iterative"}
    max_iter, tol : int, float
        Of the iterative solver.
    clamp : bool
        Whether labelled rows keep exactly the labels they were given.
    seed : int
    effort : str
        One of :data:`biglp._core.effort.EFFORTS`.
    """

    method: str
    alpha: float | None
    class_balance: Any
    solver: str
    max_iter: int
    tol: float
    clamp: bool
    seed: int
    effort: str = DEFAULT_EFFORT

    @property
    def few_alphas(self) -> bool:
        """Whether no more than a few α are tried: where one is given, and by a committee."""
        return self.alpha is not None or self.method != "spreading"

    def balances(self, *names: str) -> bool:
        """Whether the class balance is one of some names."""
        return isinstance(self.class_balance, str) and self.class_balance in names


@dataclass(frozen=True)
class Problem(Generic[AnyLabels]):
    """A graph with labels on it: what a method learns from.

    Attributes
    ----------
    graph : Graph
    labels : Labels or Targets
    sums : GramSums
        Over all rows of the graph, for these labels.
    settings : AnswerSettings
    """

    graph: Graph
    labels: AnyLabels
    sums: GramSums
    settings: AnswerSettings

    @cached_property
    def system(self) -> System:
        """The Gram matrix, ready for any α."""
        if isinstance(self.sums, OwnGraphSums):
            return OwnGraphSystem(1.0, self.sums)
        device, n_threads = self.graph.source.device, self.graph.engine.n_threads
        few = self.settings.few_alphas
        return take_apart(self.sums, len(self.labels.rows), device, n_threads, few_alphas=few)

    @cached_property
    def sample_features(self) -> Any:
        """Normalised features, before mixing, of a random sample of all rows.

        Who fetches these rows anyway puts them here.
        """
        return self.graph.features.of_rows(
            sample_rows(self.graph.source, SAMPLE, self.settings.seed)
        )

    def part_of_labels(self, most: int) -> AnyLabels:
        """The labels, or a random part of them."""
        labels = self.labels
        if len(labels.rows) <= most:
            return labels
        rng = np.random.default_rng(self.settings.seed)
        return labels.take(np.sort(rng.choice(len(labels.rows), most, replace=False)))

    def labelled(self, part: Labels) -> LabelledRows:
        """Mixed, normalised features of labelled rows, for leave-one-out."""
        features = self.sums.mix(self.graph.features_of(part.rows))
        return LabelledRows(features, part.codes, part.given)

    def spread(self, alpha: float) -> tuple[np.ndarray, int]:
        """Label spreading by the chosen solver: coefficients C and the iterations used."""
        if self.settings.solver == "closed_form":
            return self.system.solved(alpha), 1
        settings = self.settings
        return iterate(
            self.sums, alpha, self.system.radius, max_iter=settings.max_iter, tol=settings.tol
        )

    def with_labels(self, labels: AnyLabels, targets: np.ndarray) -> Problem[AnyLabels]:
        """The same graph with other labels; ``targets`` is their B."""
        return replace(self, labels=labels, sums=self.sums.with_labels(targets, labels.counts))


class Answer(ABC):
    """Turns a block of rows into what is written about them.

    Attributes
    ----------
    kind : str
        Its name in model files.
    needs_rows : bool
        Whether it looks at prepared rows beside their features.
    """

    kind: ClassVar[str]
    needs_rows: bool = False

    def expect(self, n_rows: int) -> None:  # noqa: B027  most have nothing to prepare
        """Be told how many rows will be asked about."""

    @abstractmethod
    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """What is said of a block of rows.

        Parameters
        ----------
        features : array of shape (b, p)
            Normalised features.
        rows : array or CSR matrix of shape (b, m)
            Prepared rows, where they are needed.
        own : OwnLabels, optional
            The labels of the block's rows, where these are training rows.

        Returns
        -------
        outputs : array of shape (b, c)
        n_unreached : int
            Rows that no label reaches.
        """

    def finish(self, outputs: Array) -> Array:
        """What is written of these outputs."""
        return outputs

    def count(self, answers: Array) -> dict[int, int]:
        """Rows of each class code that occurs, where answers are class probabilities."""
        called, n_classes = largest_column(answers), answers.shape[1]
        if is_torch(called) and n_classes <= FEW_CLASSES:  # all rows add to one of a few places
            found = np.array([int((called == code).sum()) for code in range(n_classes)])
        elif n_classes == 2:  # other threads go on meanwhile, as they do not beside a bincount
            n_second = int(np.count_nonzero(called))
            found = np.array([len(called) - n_second, n_second])
        else:
            found = to_numpy(namespace(answers).bincount(called))
        codes = np.flatnonzero(found)
        return dict(zip(codes.tolist(), found[codes].tolist(), strict=True))

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`from_state` rebuilds the answer."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Answer:
        """Rebuild from :meth:`state`."""


@dataclass(frozen=True)
class HeldOut:
    """What is said of labelled rows without their own labels.

    Attributes
    ----------
    rows : ndarray of shape (l,)
        Row numbers, increasing: the labelled rows, or a random part of many.
    shares : ndarray of shape (l, c)
        Class probabilities; NaN where a row was its class's only one, or nothing could be held out.
    """

    rows: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True)
class Learnt:
    """The answer that was learnt, and what was found on the way.

    Attributes
    ----------
    answer : Answer
    report : dict
        What was chosen.
    n_iter : int
        Iterations of the solver.
    held_out : HeldOut or None
        None where the method holds no labels out.
    """

    answer: Answer
    report: dict[str, Any]
    n_iter: int = 1
    held_out: HeldOut | None = None


class Method(ABC):
    """A way to learn an answer.

    Attributes
    ----------
    unreached : str
        What rows that no label reaches got, and what to do, for a warning.
    """

    unreached: ClassVar[str] = (
        "they got the class prior. Label some of them, or rows near them: suggest() (biglp suggest)"
        " names rows that are worth a label."
    )

    @classmethod
    def check(cls, labels: Any, settings: AnswerSettings, rank: int) -> None:
        """Refuse, before any row is read, what cannot work with these labels."""
        if not isinstance(settings.class_balance, str):
            given_prior(settings.class_balance, labels.n_classes)

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """What the method takes beyond the graph."""
        return Cost(seconds={"learning": 0.2})

    @classmethod
    @abstractmethod
    def learn(cls, problem: Problem[Any]) -> Learnt:
        """Learn the answer; no sweep over all rows."""
