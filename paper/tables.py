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

from biglp._core.errors import BigLPWarning
from biglp._core.settings import Settings
from biglp._engines import make_engine
from biglp._fit.pipeline import Pipeline
from biglp._labels.labels import encode_labels
from biglp._output import ArraySink
from biglp._rows import as_source
from biglp.estimators import LowRankLabelPropagation
from paper.pages import (
    STAND_INS,
    Clock,
    DataSet,
    Output,
    PaperTable,
    Part,
    column_name,
    figure,
    load_each,
    markdown_table,
    numbers,
    shared_legend,
    styles,
    tables,
)

# --------------------------------------------------------------------------------------------------
# One low-rank graph, many sets of labels.
#
# The paper repeats each experiment with several draws of labels. The graph does not depend on them,
# so it is built once here: the factor and the degrees are kept, and each set of labels costs a Gram
# sweep and a label sweep over features that are stored. The answers are those of
# ``estimator.fit(X, y).transduction_`` for each ``y``.


def transductions(
    estimator: LowRankLabelPropagation, X: np.ndarray, labelings: Sequence[np.ndarray]
) -> Iterator[np.ndarray]:
    """Labels of all rows, for each set of labels in turn.

    Parameters
    ----------
    estimator : LowRankLabelPropagation
        With a fixed α and class balance, as the paper's settings are.
    X : ndarray of shape (n_rows, n_features)
    labelings : sequence of ndarray of shape (n_rows,)
        Labels, -1 where unknown.
    """
    source = as_source(X)
    with make_engine(estimator.engine) as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)  # a narrow graph is the paper's choice
        pipeline = Pipeline(engine, Settings.of(estimator.get_params(deep=False), sklearn=True))
        graphs = None
        for y in labelings:
            labels = encode_labels(y, source.n_rows)
            sink = ArraySink(labels.classes, source.n_rows, source.dtype)
            if graphs is None:
                graphs = pipeline.graphs(pipeline.prepare(source, labels, sink.cost))
            problem = pipeline.problem(graphs, labels)
            pipeline.answer(problem, pipeline.learn(problem), sink)
            yield sink.labels


# --------------------------------------------------------------------------------------------------


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
    from paper.baselines import DensePropagation, neighbour_distance

    model = DensePropagation(
        bandwidth=neighbour_distance(X) or 1.0,
        alpha=numbers()["alpha"],
        class_balance="share",
        solver="iterative",
        tol=1e-5,
    )
    return np.asarray(model.fit(X, draw.labels).transduction_[draw.test])


# --------------------------------------------------------------------------------------------------
# From accuracies to the page: one table a data set, what was to be shown, and the figure.


MARGIN = 3.0
"""Points below the paper that still count as reaching it."""
FIGURE_METHODS = ("glnp-apgd", "nystrom-random", "nystrom-kmeans")


def run(plan: Plan, output: Output, say: Callable[[str], None]) -> list[Part]:
    """Measure, write CSV files and plots, and return the two parts of the page."""
    clock = Clock()
    found, missing = measure(plan, say)
    output.csv("tables_trials", [row for one in found for row in one.rows()])
    output.csv("tables", [row for one in found for row in _summary(one, plan)])
    if found:
        _draw(found, plan, output)
    sections = [_section(one) for one in found]
    about = (
        f"Test set 20 %, means of {plan.trials} trials, α = 0.01 with the paper's settings "
        "(`LowRankLabelPropagation.paper`). Every cell, ours and the paper's, is in "
        "[tables.csv](results/tables.csv), and every trial in "
        "[tables_trials.csv](results/tables_trials.csv). Labels are as many as the paper's line "
        "has, drawn at random from the rows that are not tested. Landmarks are drawn anew in each "
        "trial. A GLNP factor serves all trials. The paper's GLNP columns are taken to be by "
        "accelerated gradient, as its abstract has it. Multiplicative updates are not counted. "
        "The paper does not say where it puts the threshold between the classes. Here it is where "
        "the answers have the class proportions of the labels: then its numbers come out, and with "
        "a threshold at zero they do not."
    )
    if plan.trials < numbers()["trials"]:
        about += f" **{plan.trials} trials instead of the paper's {numbers()['trials']}.**"
    body = "\n\n".join([about, _overview(found), *sections]) if found else about
    part = Part("tables", "Accuracy: the supplementary tables", body, missing, _verdicts(found))
    panels = _panels(found, plan, output)
    both = [part, Part("classification", "Figure 5: classification", panels, missing)]
    for each in both:
        each.facts = clock.facts()
    return both


def paper_value(found: Found, method: str, k: int, line: int) -> float | None:
    """The paper's accuracy for one of our methods; None where it has none."""
    columns = found.table.accuracy[line]
    if method == NEIGHBOURS:
        return columns["knn"]
    if method == found.table.lp_kernel:
        return columns["lp"]
    return columns.get(f"{method.removesuffix('-apgd').removesuffix('-mu')} {k}")


def _methods(found: Found, plan: Plan) -> list[tuple[str, int]]:
    low_rank = [(method, k) for method in LOW_RANK for k in plan.ks]
    wanted = [*low_rank, ("linear", 0), ("rbf", 0), (NEIGHBOURS, 0), (DEFAULT, 0)]
    return [pair for pair in wanted if any(key[:2] == pair for key in found.accuracy)]


def _summary(found: Found, plan: Plan) -> list[dict[str, Any]]:
    rows = []
    for method, k in _methods(found, plan):
        for line, (wanted, count) in enumerate(found.counts.items()):
            ours = found.mean(method, k, count)
            paper = paper_value(found, method, k, line)
            rows.append(
                {
                    "paper_data": found.table.name,
                    "data": found.data.stand_in.title,
                    "percent": found.table.percent[line],
                    "paper_labels": wanted,
                    "labels": count,
                    "method": method,
                    "k": k or "none",
                    "ours": "not run" if ours is None else round(ours, 2),
                    "paper": "not in the paper" if paper is None else paper,
                    "difference": "no pair"
                    if ours is None or paper is None
                    else round(ours - paper, 2),
                }
            )
    return rows


def _section(found: Found) -> str:
    stand_in, table = found.data.stand_in, found.table
    same = "the same problem" if stand_in.same_problem else "another problem"
    text = [
        f"### {table.name} ({table.number})",
        "",
        f"Stand-in: **{found.data.title}**, {same}. {stand_in.about} "
        f"The paper: {table.samples:,} × {table.features:,}.",
    ]
    short = [wanted for wanted, count in found.counts.items() if count < wanted]
    if short:
        text += [
            "",
            f"The subset is too small for {' and '.join(f'{n:,}' for n in short)} labels: that "
            f"column has all {max(found.counts.values()):,} rows outside the test set labelled.",
        ]
    return "\n".join(text)


def _overview(found: list[Found]) -> str:
    """Default settings beside the paper's best column and 5-NN, every line."""
    rows = []
    for one in found:
        for line, count in enumerate(one.counts.values()):
            ours, near = one.mean(DEFAULT, 0, count), one.mean(NEIGHBOURS, 0, count)
            column, best = one.table.best(line)
            assert ours is not None
            assert near is not None
            same = "" if one.data.stand_in.same_problem else " (another problem)"
            rows.append(
                [
                    f"{one.data.stand_in.title} for {one.table.name}{same}",
                    f"{count:,}",
                    f"{ours:.1f}",
                    f"{best:.1f} ({column_name(column)}): {ours - best:+.1f}",
                    f"{near:.1f}: {ours - near:+.1f}",
                ]
            )
    head = ["data", "labels", "biglp, default", "the paper's best column", "5-NN, ours"]
    return "### Default settings, line by line\n\n" + markdown_table(head, rows)


def _verdicts(found: list[Found]) -> list[tuple[bool | None, str]]:
    if not found:
        return [(None, "all data is missing")]
    short, cells, below_best, below_near, lines, best_lines = [], 0, [], [], 0, 0
    for one in found:
        same = one.data.stand_in.same_problem
        for line, (wanted, count) in enumerate(one.counts.items()):
            where = f"{one.table.name} at {count:,} labels"
            ours, near = one.mean(DEFAULT, 0, count), one.mean(NEIGHBOURS, 0, count)
            assert ours is not None
            assert near is not None
            lines += 1
            if ours <= near:
                below_near.append(f"{where} ({ours:.1f} against {near:.1f})")
            if not same:
                continue
            best_lines += 1
            best = one.table.best(line)[1]
            if ours <= best:
                below_best.append(f"{where} ({ours:.1f} against {best:.1f})")
            for method, k, of_count in one.accuracy:
                paper = paper_value(one, method, k, line)
                if of_count != count or count < wanted or paper is None:
                    continue
                if method in (NEIGHBOURS, MULTIPLICATIVE):
                    continue
                cells += 1
                value = one.mean(method, k, count)
                if value is not None and value < paper - MARGIN:
                    name = NAMES[method] + (f", k = {k}" if k else "")
                    short.append(f"{where}, {name} ({value:.1f} against {paper:.1f})")
    return [
        (
            not short,
            f"the paper's settings reach the paper less {MARGIN:g} points at equal numbers of "
            f"labels, where the problem is the same: {cells - len(short)} of {cells} cells"
            + (f". Short: {'; '.join(short)}" if short else ""),
        ),
        (
            not below_best,
            "default settings are above the paper's best column, where the problem is the same: "
            f"{best_lines - len(below_best)} of {best_lines} lines"
            + (f". Not: {'; '.join(below_best)}" if below_best else ""),
        ),
        (
            not below_near,
            f"default settings are above 5-NN: {lines - len(below_near)} of {lines} lines"
            + (f". Not: {'; '.join(below_near)}" if below_near else ""),
        ),
    ]


def _panels(found: list[Found], plan: Plan, output: Output) -> str:
    if not found:
        return "Nothing could be drawn: all data is missing (see below)."
    k = max(plan.ks)
    return (
        f"Above, accuracy by number of labels at k = {k} (panel A of the paper); below, by k at "
        f"{FIGURE_LABELS} labels (panel B). Dashed lines in panel B do not depend on k. The "
        "curves of the paper's own figure at k = 10 and 100 are its tables, which panel A shows "
        "as hollow marks. GLNP is by accelerated gradient, up to k = "
        f"{max(plan.figure_ks)} only, because it takes longest. "
        "Numbers: [tables_trials.csv](results/tables_trials.csv), "
        "[tables.csv](results/tables.csv).\n\n"
        + output.link("classification", "Accuracy by labels and by k, for each data set")
    )


def _draw(found: list[Found], plan: Plan, output: Output) -> None:
    k = max(plan.ks)
    with figure(output.image("classification"), len(found), 2, (2.9, 2.7)) as (drawn, axes):
        for column, one in enumerate(found):
            top, bottom = axes[column], axes[len(found) + column]
            counts = list(one.counts.values())
            lines: list[tuple[str, int]] = [(method, k) for method in FIGURE_METHODS]
            lines += [(NEIGHBOURS, 0), (DEFAULT, 0)]
            for (method, rank), style in zip(lines, styles(), strict=False):
                name = NAMES[method].strip("*")
                top.plot(counts, [one.mean(method, rank, n) for n in counts], label=name, **style)
                paper = [paper_value(one, method, rank, line) for line in range(len(counts))]
                if None not in paper:
                    hollow = {**style, "linestyle": "none", "fillstyle": "none"}
                    top.plot(counts, paper, label=f"the paper's {name}", **hollow)
                if rank:
                    ks = sorted(key[1] for key in one.accuracy if _by_k(key, method))
                    values = [one.mean(method, each, FIGURE_LABELS) for each in ks]
                    bottom.plot(ks, values, **style)
                else:
                    level = one.mean(method, 0, FIGURE_LABELS)
                    bottom.axhline(level, color=style["color"], linestyle="--", linewidth=1.2)
            top.set(title=f"{one.data.stand_in.title}\nfor {one.table.name}", xscale="log")
            top.set_xlabel("labels")
            bottom.set(xscale="log", xlabel="k")
            for axis, ticks in ((top, counts), (bottom, (*plan.figure_ks, *plan.wide_ks))):
                axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
                axis.minorticks_off()
        axes[0].set_ylabel("accuracy, %")
        axes[len(found)].set_ylabel(f"accuracy, %, {FIGURE_LABELS} labels")
        shared_legend(drawn, axes[0], 5)


def _by_k(key: tuple[str, int, int], method: str) -> bool:
    return key[0] == method and key[2] == FIGURE_LABELS
