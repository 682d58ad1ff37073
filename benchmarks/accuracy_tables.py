"""Tables of docs/accuracy.md, as lines of Markdown, from the lines of the results.

All means are over cells (a data set, a number of rows and a number of labels), each the mean of its
draws. Only draws that every method has are used, so that a run that is not complete still compares
like with like.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from accuracy_data import AT_RANDOM, PER_CLASS, SETS, SIZES, TABLE, TEXT
from accuracy_methods import CONSTANT, METHODS, OURS

CELL = ["data", "rows", "how", "labels"]
LOWER = {"log_loss", "calibration"}
"""Figures of which less is better."""
SHOWN = (OURS, "LabelSpreading(knn)", "Poisson", "5-NN", "logistic regression", "forest")
"""Methods of the tables after the first; the results have all of them."""
MARGIN = 2.0
"""Points below the best peer that count as a loss, unless the standard error is larger."""
TABLES = [name for name, about in SETS.items() if about.kind == TABLE]
TEXTS = [name for name, about in SETS.items() if about.kind == TEXT]


def complete(results: pd.DataFrame) -> pd.DataFrame:
    """The draws that every method has, in the order of sets, sizes and labels."""
    methods = results.method.unique()
    results = results.drop_duplicates([*CELL, "draw", "method"], keep="last")
    count = results.groupby([*CELL, "draw"]).method.transform("count")
    kept = results[count == len(methods)].copy()
    for column, order in (("data", SETS), ("method", METHODS)):
        kept[column] = pd.Categorical(kept[column], [x for x in order if x in set(kept[column])])
    return kept.sort_values([*CELL, "draw", "method"])


def cells(results: pd.DataFrame, figure: str) -> pd.DataFrame:
    """Mean figure by cell (lines) and method (columns)."""
    return results.pivot_table(index=CELL, columns="method", values=figure, observed=True)


def peers(table: pd.DataFrame) -> list[str]:
    """Methods that biglp is compared with; the constant answer is no method."""
    return [method for method in table.columns if method not in (OURS, CONSTANT)]


def looking(accuracy: pd.DataFrame, balanced: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of peers, without those of a cell that give all rows the same answer.

    With one or two labels a class some break ties by the order of class names, and so call every
    row the first class: right or wrong by the name that the largest class happens to have.
    """
    rivals = peers(accuracy)
    if CONSTANT not in balanced:
        return accuracy[rivals]
    return accuracy[rivals].where(balanced[rivals].gt(balanced[CONSTANT] + 0.1, axis=0))


def part(results: pd.DataFrame, how: str, names: Sequence[str] = ()) -> pd.DataFrame:
    """Lines with labels drawn in one way, on some data sets or all."""
    kept = results[results.how == how]
    return kept[kept.data.isin(names)] if names else kept


def markdown(head: Sequence[str], lines: Sequence[Sequence[object]]) -> list[str]:
    """A table."""
    rows = [list(head), ["---"] * len(head), *lines]
    return ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def shown(values: pd.Series, digits: int, *, lower: bool = False) -> pd.Series:
    """Figures as text, the best ones of them bold."""
    text = values.map(lambda value: f"{value:.{digits}f}")
    best = text[values.idxmin() if lower else values.idxmax()]
    return text.where(text != best, f"**{best}**")


def summary(results: pd.DataFrame, left_out: pd.DataFrame | None) -> list[str]:
    """One line a method, one for biglp with each data set left out, one for the oracle."""
    accuracy, balanced = cells(results, "accuracy"), cells(results, "balanced")
    counts = [each for each in PER_CLASS if each in accuracy.index.get_level_values("labels")]
    ranks = accuracy[[OURS, *peers(accuracy)]].rank(axis=1, ascending=False)
    lines = []

    def add(name: str, values: pd.Series, rank: str, even: str) -> None:
        by = values.groupby(level="labels").mean()
        means = [f"{values.mean():.1f}", rank, even, *(f"{by[each]:.1f}" for each in counts)]
        lines.append([name, *means])

    for method in accuracy.columns:
        name = f"**{method}**" if method == OURS else method
        rank = f"{ranks[method].mean():.2f}" if method in ranks else ""
        add(name, accuracy[method], rank, f"{balanced[method].mean():.1f}")
        if method == OURS and left_out is not None:
            ours = cells(left_out, "accuracy")[OURS].reindex(accuracy.index)
            even = cells(left_out, "balanced")[OURS].reindex(accuracy.index)
            name = "biglp, leave one data set out"
            if not ours.notna().all():
                same = accuracy[method][ours.notna()]
                name += f" ({len(same)} of {len(ours)} cells, on which biglp has {same.mean():.1f})"
            add(name, ours, "", f"{even.mean():.1f}")
    rivals = peers(accuracy)
    even = f"{balanced[rivals].max(axis=1).mean():.1f}"
    add("oracle: the best peer of each cell", accuracy[rivals].max(axis=1), "", even)
    best = looking(accuracy, balanced).max(axis=1)
    add("oracle, without peers that call all rows one class", best, "", even)
    head = ["method", "mean", "mean rank", "balanced", *(f"{each} a class" for each in counts)]
    return markdown(head, lines)


def by_size(results: pd.DataFrame) -> list[str]:
    """Biglp, the peer with the best mean and the oracle, by number of rows."""
    accuracy = cells(results, "accuracy")
    lines = []
    for size in SIZES:
        if size not in accuracy.index.get_level_values("rows"):
            continue
        here = accuracy.xs(size, level="rows")
        best = here[peers(here)].mean().idxmax()
        oracle = here[peers(here)].max(axis=1)
        sets = len(here.index.get_level_values("data").unique())
        figures = [here[OURS].mean(), here[best].mean(), oracle.mean()]
        texts = [f"{value:.1f}" for value in figures]
        ahead = f"{figures[0] - figures[2]:+.1f}"
        lines.append([f"{size:,}", sets, texts[0], f"{texts[1]} ({best})", texts[2], ahead])
    head = ["rows", "sets", "biglp", "best peer", "oracle", "biglp − oracle"]
    return markdown(head, lines)


def at_random(results: pd.DataFrame, left_out: pd.DataFrame | None) -> list[str]:
    """AUC / log-loss by method and count of random labels, means over data sets and sizes."""
    figures = {name: cells(results, name) for name in ("auc", "log_loss")}
    if left_out is not None:
        for name, table in figures.items():
            table.columns = table.columns.astype(str)
            ours = cells(left_out, name)[OURS].reindex(table.index)
            table.insert(1, "biglp, leave one data set out", ours)
    means = {name: table.groupby(level="labels").mean() for name, table in figures.items()}
    counts = [count for count in AT_RANDOM if count in means["auc"].index]
    columns = {
        count: shown(means["auc"].loc[count], 1)
        + " / "
        + shown(means["log_loss"].loc[count], 3, lower=True)
        for count in counts
    }
    lines = [
        [f"**{method}**" if method == OURS else method, *(columns[c][method] for c in counts)]
        for method in figures["auc"].columns
        if method in SHOWN
    ]
    return markdown(["method", *(f"{count:,} labels" for count in counts)], lines)


def text_table(results: pd.DataFrame) -> list[str]:
    """Accuracy on text with all rows, by set and labels a class."""
    accuracy = cells(results, "accuracy")
    lines, head = {method: [] for method in accuracy.columns}, ["method"]
    for name in accuracy.index.get_level_values("data").unique():
        here = accuracy.xs(name, level="data")
        here = here.xs(here.index.get_level_values("rows").max(), level="rows")
        for (_, each), line in here.iterrows():
            head.append(f"{name}, {each}")
            for method, value in shown(line, 1).items():
                lines[method].append(value)
    return markdown(head, [[method, *lines[method]] for method in SHOWN if method in lines])


def losses(results: pd.DataFrame) -> list[list[str]]:
    """Cells where biglp is below the best peer by more than the margin, with the figures."""
    accuracy, balanced = cells(results, "accuracy"), cells(results, "balanced")
    pairs = results.pivot_table(
        index=[*CELL, "draw"], columns="method", values="accuracy", observed=True
    )
    lines = []
    for cell, line in accuracy.iterrows():
        best = line[peers(accuracy)].idxmax()
        here = pairs.loc[cell]
        gap = here[best] - here[OURS]
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        if gap.mean() > max(MARGIN, error):
            name, size, how, count = cell
            labels = f"{count} a class" if how == "class" else f"{count} at random"
            even = f"{balanced.loc[cell, OURS]:.1f} / {balanced.loc[cell, best]:.1f}"
            figures = [f"{line[OURS]:.1f}", f"{line[best]:.1f} ({best})"]
            behind = f"{gap.mean():.1f} ± {error:.1f}"
            lines.append([name, f"{size:,}", labels, *figures, behind, even])
    return sorted(lines, key=lambda line: -float(line[5].split()[0]))


def estimates(results: pd.DataFrame) -> list[str]:
    """How far biglp's own estimate of its accuracy is off, and how often its interval holds it."""
    ours = results[(results.method == OURS) & results.estimate.notna()]
    lines = []
    for (how, count), here in ours.groupby(["how", "labels"]):
        off = (here.estimate - here.accuracy).abs().mean()
        held = here.accuracy.between(here.low, here.high).mean()
        width = (here.high - here.low).mean()
        labels = f"{count} a class" if how == "class" else f"{count:,} at random"
        bias = (here.estimate - here.accuracy).mean()
        figures = [f"{off:.1f}", f"{bias:+.1f}", f"{100 * held:.0f} %", f"{width:.1f}"]
        lines.append([labels, *figures])
    if not lines:
        return []
    head = ["labels", "off by", "mean difference", "in the interval", "width of the interval"]
    return markdown(head, lines)


def calibration_errors(results: pd.DataFrame) -> list[str]:
    """Mean calibration error of each cell's draws by method and labels."""
    table = results.pivot_table(
        index="method", columns=["how", "labels"], values="calibration", observed=True
    )
    head = ["method", *(f"{n} a class" if h == "class" else f"{n:,} r" for h, n in table.columns)]
    lines = [
        [name, *(f"{v:.1f}" for v in line)] for name, line in table.iterrows() if name in SHOWN
    ]
    return markdown(head, lines)
