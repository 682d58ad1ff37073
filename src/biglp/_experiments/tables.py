"""The paper's accuracy tables and its classification figure, with its settings and with ours.

The protocol: 20 % of the rows are the test set; labels are drawn from the rest, as many as the
paper's line has; all rows are in the graph; accuracy is that on the test set, averaged over trials.
The paper's settings are ``LowRankLabelPropagation.paper``; "default" is
``LowRankLabelPropagation()``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biglp._experiments.data import STAND_INS, DataSet, load_each
from biglp._experiments.paper import PaperTable, numbers, tables
from biglp._experiments.sharing import transductions

FIGURE_LABELS = 100
"""Labels behind the panel of accuracy by k ("around 100" in the paper)."""
PATIENCE = 5
DEFAULT, NEIGHBOURS = "default", "knn"
ACCELERATED, MULTIPLICATIVE, LINEAR = "glnp-apgd", "glnp-mu", "linear"
LEARNT = (ACCELERATED, MULTIPLICATIVE)
"""Methods that learn their factor in many sweeps: one fit serves all trials."""
LOW_RANK = (*LEARNT, "nystrom-random", "nystrom-kmeans")
NAMES = {
    ACCELERATED: "GLNP, accelerated gradient",
    MULTIPLICATIVE: "GLNP, multiplicative",
    "nystrom-random": "Nyström (random)",
    "nystrom-kmeans": "Nyström (k-means)",
    LINEAR: "LP (linear)",
    "rbf": "LP (RBF), exact",
    NEIGHBOURS: "5-NN",
    DEFAULT: "**biglp, default settings**",
}


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes
    ----------
    trials : int
        Draws of labels.
    ks : tuple of int
        Ranks of the tables.
    figure_ks : tuple of int
        Ranks of the panel of accuracy by k, for GLNP; ``wide_ks`` more for Nyström.
    names : tuple of str
        Data sets of the paper.
    dense_rows : int
        Most rows for the exact n × n graph.
    glnp_iterations : int
        Most iterations of GLNP by accelerated gradient; multiplicative updates, which stay
        long near a saddle point after a random start, may take ``PATIENCE`` times as many.
    """

    trials: int = 10
    ks: tuple[int, ...] = (10, 100)
    figure_ks: tuple[int, ...] = (10, 20, 50, 100)
    wide_ks: tuple[int, ...] = (200, 500)
    names: tuple[str, ...] = tuple(STAND_INS)
    dense_rows: int = 8_000
    glnp_iterations: int = 200


FULL = Plan()
QUICK = Plan(trials=3, figure_ks=(10, 30, 100), wide_ks=(300,))


@dataclass(frozen=True)
class Draw:
    """One trial: which rows are tested, and labels (-1 where unknown)."""

    trial: int
    count: int
    labels: np.ndarray
    test: np.ndarray


@dataclass
class Found:
    """Accuracies in percent on one data set.

    Attributes
    ----------
    data : DataSet
    table : PaperTable
    counts : dict of int to int
        Labels that could be given for each number of labels that the paper's lines have.
    accuracy : dict of (str, int, int) to list of float
        By method, k (0 where there is none) and labels given; one entry a trial.
    """

    data: DataSet
    table: PaperTable
    counts: dict[int, int]
    accuracy: dict[tuple[str, int, int], list[float]] = field(default_factory=dict)

    def mean(self, method: str, k: int, count: int) -> float | None:
        """Mean accuracy over the trials; None where it was not run."""
        values = self.accuracy.get((method, k, count))
        return float(np.mean(values)) if values else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a trial, for CSV."""
        for (method, k, count), values in self.accuracy.items():
            for trial, value in enumerate(values):
                yield {
                    "paper_data": self.table.name,
                    "data": self.data.stand_in.title,
                    "method": method,
                    "k": k or "none",
                    "labels": count,
                    "trial": trial,
                    "accuracy": round(value, 3),
                }


def measure(plan: Plan, say: Callable[[str], None]) -> tuple[list[Found], list[str]]:
    """Run every method on every data set that is here; also return what is missing."""
    found: list[Found] = []
    missing: list[str] = []
    for name, data in load_each(plan.names, missing, say):
        say(f"{name}: {data.title}")
        found.append(_one_set(data, tables()[name], plan, say))
    return found, missing


def draws(truth: np.ndarray, counts: Sequence[int], trials: int) -> list[Draw]:
    """Labels for each trial and number of labels; smaller sets are part of the larger ones."""
    made = []
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        n_test = round(numbers()["test_share"] * len(truth))
        order = rng.permutation(len(truth))
        # A draw of one class teaches nothing and is drawn again.
        while len(set(truth[order[n_test:][: min(counts)]])) < 2:
            order = rng.permutation(len(truth))
        for count in counts:
            labels = np.full(len(truth), -1, dtype=np.int64)
            known = order[n_test:][:count]
            labels[known] = truth[known]
            made.append(Draw(trial, count, labels, order[:n_test]))
    return made


def _one_set(data: DataSet, table: PaperTable, plan: Plan, say: Callable[[str], None]) -> Found:
    largest = len(data.truth) - round(numbers()["test_share"] * len(data.truth))
    counts = {count: min(count, largest) for count in table.labels}
    found = Found(data, table, counts)
    trials = draws(data.truth, sorted({*counts.values(), FIGURE_LABELS}), plan.trials)
    for method, k, answers in _answers(data, table, trials, plan):
        for draw, answer in zip(trials, answers, strict=True):
            if answer is not None:
                right = 100.0 * float(np.mean(answer == data.truth[draw.test]))
                found.accuracy.setdefault((method, k, draw.count), []).append(right)
        say(f"  {method}{f' k={k}' if k else ''} done")
    return found


def _answers(
    data: DataSet, table: PaperTable, trials: list[Draw], plan: Plan
) -> Iterator[tuple[str, int, list[np.ndarray | None]]]:
    """Each method's labels of the test rows, trial by trial."""
    X = data.X
    yield DEFAULT, 0, [_default(X, draw) for draw in trials]
    yield NEIGHBOURS, 0, [_neighbours(X, draw) for draw in trials]
    yield LINEAR, 0, _propagated(X, trials, LINEAR, 1)
    for k in sorted({*plan.ks, *plan.figure_ks, *plan.wide_ks}):
        wanted = trials if k in plan.ks else [d for d in trials if d.count == FIGURE_LABELS]
        for method in LOW_RANK:
            if k in plan.wide_ks and method in LEARNT:
                continue  # GLNP takes longest by far
            if k not in plan.ks and method == MULTIPLICATIVE:
                continue
            patience = PATIENCE if method == MULTIPLICATIVE else 1
            answers = _propagated(X, wanted, method, k, patience * plan.glnp_iterations)
            known = {id(draw): answer for draw, answer in zip(wanted, answers, strict=True)}
            yield method, k, [known.get(id(draw)) for draw in trials]
    if table.lp_kernel == "rbf" and len(X) <= plan.dense_rows:
        yield "rbf", 0, [_exact(X, draw) for draw in trials]


def _propagated(
    X: np.ndarray, trials: list[Draw], method: str, k: int, iterations: int = 0
) -> list[np.ndarray | None]:
    """Answers with the paper's settings: new landmarks for each trial, one GLNP for all of them."""
    from biglp import LowRankLabelPropagation

    answers: list[np.ndarray | None] = []
    shared = method in (*LEARNT, LINEAR)
    groups = (
        [trials]
        if shared
        else [
            [draw for draw in trials if draw.trial == trial]
            for trial in sorted({draw.trial for draw in trials})
        ]
    )
    for group in groups:
        estimator = LowRankLabelPropagation.paper(method, k=k, random_state=group[0].trial)
        if method in LEARNT:
            estimator.factor_params = {"start": "uniform", "max_iter": iterations}
        all_labels = transductions(estimator, X, [draw.labels for draw in group])
        for draw, labels in zip(group, all_labels, strict=True):
            answers.append(labels[draw.test])
    return answers


def _default(X: np.ndarray, draw: Draw) -> np.ndarray:
    from biglp import LowRankLabelPropagation
    from biglp._core.errors import BigLPWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)
        model = LowRankLabelPropagation(random_state=draw.trial).fit(X, draw.labels)
    return np.asarray(model.transduction_[draw.test])


def _neighbours(X: np.ndarray, draw: Draw) -> np.ndarray:
    from sklearn.neighbors import KNeighborsClassifier

    known = draw.labels >= 0
    voters = KNeighborsClassifier(min(numbers()["neighbours"], int(known.sum())))
    return np.asarray(voters.fit(X[known], draw.labels[known]).predict(X[draw.test]))


def _exact(X: np.ndarray, draw: Draw) -> np.ndarray:
    from biglp.baselines import DensePropagation, neighbour_distance

    model = DensePropagation(
        bandwidth=neighbour_distance(X) or 1.0,
        alpha=numbers()["alpha"],
        class_balance="share",
        solver="iterative",
        tol=1e-5,
    )
    return np.asarray(model.fit(X, draw.labels).transduction_[draw.test])
