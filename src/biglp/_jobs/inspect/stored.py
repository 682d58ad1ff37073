"""What steps cost that are not worth a trial: formulas, with constants of one machine.

Learning takes no sweep over the rows. Its parts are known: systems of as many equations as there
are landmarks, and models of the labelled rows. Trying it would take as long as doing it, and may
load scikit-learn, which takes a second by itself. Constants are processor seconds of one core at
2.8 GHz, found on simulated rows of many shapes; :func:`speed` says how this machine compares.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from biglp._answers.base import SAMPLE
from biglp._answers.committee.forest import SIDE_BY_SIDE
from biglp._answers.committee.logistic import ENOUGH
from biglp._answers.committee.nearest import count_voters
from biglp._answers.committee.spread import STARTS
from biglp._answers.committee.walks import FEW
from biglp._answers.spreading import ALPHAS, DEFAULT_ALPHA, LABELS_TO_CHOOSE
from biglp._core.effort import EFFORTS, PLAIN_STEPS, TREE_STEP, pair_seconds
from biglp._core.jit import has_compiler
from biglp._core.settings import Settings
from biglp._core.shape import Shape
from biglp._core.threads import one_blas_thread
from biglp._fit.memory import MemoryPlan
from biglp._lowrank import FACTORS
from biglp._propagate.dense_system import MOST_LABELLED, MOST_SOLVED
from biglp._propagate.systems import FACTOR_RANK, is_factored

SKLEARN, OPTIMIZE, COMPILER = 1.0, 0.2, 0.1
"""Loading scikit-learn, what the weights of the members are found by, and compiled walks."""
REFERENCE = 0.0055
"""What :func:`_work` took where the constants were found."""
EIGEN, FACTOR, INVERSE, SOLVE = 2.9e-10, 2.2e-11, 3.3e-11, 3.2e-11
"""Eigenvectors, Cholesky factor and its inverse, of r × r numbers for r³, and solving for a label
for r²."""
STEPS, ENTRY, VECTOR = 3.5, 1.2e-9, 1.2e-8
"""Conjugate gradients: steps for √(1/(1−α)), between the 1.5 of graphs in one piece and the 5 of
tables with many equal rows, and what one takes of each column for an entry of the Gram matrix and
for a landmark."""
LAYERS = 3
"""Times that the columns of the classes are solved for, each in some layers."""
PYTHON, PYARROW, SKLEARN_BYTES = 48 << 20, 40 << 20, 70 << 20
"""Memory of Python with its usual libraries, of pyarrow for tables, and of scikit-learn."""
FITTING, SMALL = 0.75, 0.25
"""Shares of what is set aside for samples and for small arrays that are usually taken."""
FOREST_BYTES = 64 * 8
"""What trees take of memory for each label and class."""
WIDE, WIDE_FITTING = 5000, 1.1
"""Features from which on landmarks are most of what is taken, and their share with copies."""
KNOWN = ("committee", "spreading")
"""Methods that are known here; others are tried."""


@dataclass(frozen=True)
class Learning:
    """The size of what is learnt.

    Attributes
    ----------
    shape : Shape
    rank : int
    entries : float
        Of the Gram matrix, where it is sparse; else 0.
    width : int
        Features of a prepared row.
    trees : bool
        Whether rows are such that trees are grown: words and pixels are not.
    """

    shape: Shape
    rank: int
    entries: float
    width: int
    trees: bool

    def seconds(self, settings: Settings) -> float:
        """Processor time of learning."""
        alpha = settings.answer.alpha
        given = () if alpha is None else (alpha,)
        if settings.answer.method == "spreading":
            few = self.shape.n_labelled < LABELS_TO_CHOOSE * self.shape.n_classes
            alphas = given or ((DEFAULT_ALPHA,) if few else ALPHAS)
            return 0.01 + self._graph(alphas, few=settings.answer.few_alphas)
        return self._graph(given or tuple(STARTS), few=True) + self._models()

    def _graph(self, alphas: tuple[float, ...], *, few: bool) -> float:
        rank, labels, classes = self.rank, self.shape.n_labelled, self.shape.n_classes
        entries = int(self.entries)
        if entries and is_factored(rank, labels, classes, entries):
            solved = min(labels, MOST_SOLVED)
            return len(alphas) * (FACTOR * rank**3 + SOLVE * solved * rank**2)
        if entries:
            columns = min(labels, MOST_SOLVED) + LAYERS * 3 * (classes + 1)
            steps = STEPS * sum((1.0 - alpha) ** -0.5 for alpha in alphas)
            return steps * columns * (ENTRY * entries + VECTOR * rank)
        if rank >= FACTOR_RANK and (few or labels <= rank):
            energies = min(SOLVE * labels * rank**2, INVERSE * rank**3)
            return len(alphas) * (FACTOR * rank**3 + energies)
        labels = min(labels, MOST_LABELLED)
        return EIGEN * rank**3 + len(alphas) * SOLVE * labels * rank**2

    def _models(self) -> float:
        """Logistic regression, trees, weights of the members and the estimate of accuracy."""
        m, c = self.width, self.shape.n_classes
        labels = min(self.shape.n_labelled, MOST_LABELLED if not self.entries else MOST_SOLVED)
        tried = 2 if labels >= ENOUGH * c else 1  # strengths of the pull towards zero
        logistic = 0.01 + tried * labels * c * (5e-7 + 3.5e-8 * m)
        weights = 0.08 + 2.5e-6 * labels * c
        return logistic + weights + self._grown(labels, m, c)

    def _grown(self, labels: int, m: int, c: int) -> float:
        if not self.trees:
            return 0.0
        if self.grows_many:
            return 0.19 + labels * (5e-5 + 3e-6 * c + (2.7e-5 + 1.6e-6 * c) * m**0.5)
        return 0.02 + labels * (2e-4 + 1.2e-5 * c)

    @property
    def grows_many(self) -> bool:
        """Whether there are so many labels that scikit-learn grows the trees."""
        return self.trees and self.shape.n_labelled * int(self.width**0.5) > SIDE_BY_SIDE

    def loading(self, settings: Settings) -> float:
        """Loading what a method needs more than this process has."""
        if settings.answer.method != "committee":
            return 0.0
        compiled = self.trees and self.shape.n_rows > FEW and has_compiler()
        found = COMPILER * compiled + OPTIMIZE * ("scipy.optimize" not in sys.modules)
        return found + SKLEARN * (self.loads_sklearn and "sklearn.tree" not in sys.modules)

    @property
    def loads_sklearn(self) -> bool:
        """Whether trees are grown by scikit-learn, or asked about many rows without a compiler."""
        asked = self.shape.n_rows + SAMPLE  # beside those that tell the size of its logits
        return self.grows_many or (self.trees and asked > FEW and not has_compiler())

    def row_seconds(self, settings: Settings) -> float:
        """What asking about a row takes more than a product: trees and nearest labels."""
        if settings.answer.method != "committee":
            return 0.0
        effort, labels = EFFORTS[settings.graph.effort], self.shape.n_labelled
        step = TREE_STEP * (1 if has_compiler() else PLAIN_STEPS)
        walked = effort.trees * (np.log2(max(labels, 2)) + 2) * step * self.trees
        voters = count_voters(labels, self.shape.n_rows, self.width, effort)
        return float(walked + voters * pair_seconds(self.width))


def likely_memory(plan: MemoryPlan, shape: Shape, *, sklearn: bool) -> int:
    """Memory that a run will take, where the plan says what it takes at most.

    Parameters
    ----------
    plan : MemoryPlan
    shape : Shape
    sklearn : bool
        Whether scikit-learn is loaded.
    """
    process = PYTHON + PYARROW * (shape.decoding > 0) + SKLEARN_BYTES * sklearn
    in_work = plan.workers * plan.rows_each
    blocks = plan.blocks * min(shape.n_rows / in_work, 1.0)
    forest = FOREST_BYTES * shape.n_classes * shape.n_labelled if sklearn else 0
    wide = shape.n_features >= WIDE and not shape.directions
    fitting = WIDE_FITTING if wide else FITTING
    working = max(fitting * plan.fitting, SMALL * plan.small + plan.kept + forest)
    later = plan.labels + plan.answers + blocks + working
    found = process + max(plan.decoding + blocks, later)
    return int(min(found, plan.expected))


def is_known(settings: Settings) -> bool:
    """Whether what a method learns can be counted."""
    own = FACTORS[settings.graph.factor].pairwise
    return settings.answer.method in KNOWN and settings.answer.solver == "closed_form" and not own


def ending(shape: Shape, rank: int, *, report: bool) -> float:
    """Groups unlike the labels, the model file, and a page for people."""
    last = 0.15 + 8e-5 * min(rank, 4000) + 3e-4 * min(shape.width, 200)
    return last + (0.4 + 2e-4 * min(rank, 4000)) * report


@cache
def speed() -> float:
    """Processor time of this machine for a second where the constants were found."""
    with one_blas_thread():  # as in a fit
        _work()  # libraries are found, memory is asked for
        return float(np.median([_timed() for _ in range(9)])) / REFERENCE


def _timed() -> float:
    began = time.thread_time()  # other threads may still be waiting for work, which counts as work
    _work()
    return time.thread_time() - began


def _work() -> float:
    """Some of everything: products, sorting, many small steps."""
    values = np.linspace(0.0, 1.0, 200 * 200).reshape(200, 200)
    for _ in range(5):
        values = values @ values
        values /= np.abs(values).max()
    total = float(np.sort(np.sin(1e4 * values), axis=None)[::100].sum())
    return total + sum(number % 7 for number in range(20_000))
