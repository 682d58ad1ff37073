"""Tables and plots of docs/accuracy.md from the results of benchmarks/accuracy.py.

Run with:  python benchmarks/accuracy_page.py [--results docs/results] [--page docs/accuracy.md].
The part of the page between the two marks is replaced; the rest is kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from accuracy import LABELS, SETS
from accuracy_methods import METHODS

OURS = next(iter(METHODS))
PEERS = [method for method in METHODS if method != OURS]
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
MARGIN = 2.0
"""Points below the best peer that count as a loss, unless the standard error is larger."""


def cells(results: pd.DataFrame, score: str) -> pd.DataFrame:
    """Mean score by data set and labels (lines) and method (columns)."""
    table = results.pivot_table(index=["data", "labels"], columns="method", values=score)
    order = [(name, each) for name in SETS for each in LABELS if (name, each) in table.index]
    return table.loc[order, list(METHODS)]


def losses(results: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Cells where biglp is below the best peer by more than the margin, with the figures."""
    lines = []
    for (name, each), line in table.iterrows():
        best = line[PEERS].idxmax()
        here = results[(results.data == name) & (results.labels == each)]
        pairs = here.pivot_table(index="draw", columns="method", values="accuracy")
        gap = pairs[best] - pairs[OURS]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        if gap.mean() > max(MARGIN, error):
            lines.append(
                f"| {name} | {each} | {line[OURS]:.1f} | {line[best]:.1f} | {best} | "
                f"{gap.mean():.1f} ± {error:.1f} |"
            )
    return lines


def summary(accuracy: pd.DataFrame, balanced: pd.DataFrame) -> list[str]:
    """One line a method, and one for the oracle."""
    ranks = accuracy.rank(axis=1, ascending=False)
    by_labels = accuracy.groupby(level="labels").mean()
    head = ["method", "mean", "mean rank", "balanced", *(f"{each} a class" for each in LABELS)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for method in METHODS:
        figures = [accuracy[method].mean(), ranks[method].mean(), balanced[method].mean()]
        figures += [by_labels.loc[each, method] for each in LABELS]
        shown = [
            f"{figures[0]:.1f}",
            f"{figures[1]:.2f}",
            *(f"{value:.1f}" for value in figures[2:]),
        ]
        name = f"**{method}**" if method == OURS else method
        lines.append("| " + " | ".join([name, *shown]) + " |")
    best = accuracy[PEERS].max(axis=1)
    by_labels = best.groupby(level="labels").mean()
    shown = [f"{by_labels[each]:.1f}" for each in LABELS]
    lines.append(
        f"| oracle: the best peer of each cell | {best.mean():.1f} | | | {' | '.join(shown)} |"
    )
    return lines


def whole_table(accuracy: pd.DataFrame) -> list[str]:
    """Every cell."""
    lines = [
        "| data | labels a class | " + " | ".join(METHODS) + " |",
        "|---" * (len(METHODS) + 2) + "|",
    ]
    for (name, each), line in accuracy.iterrows():
        best = line.max()
        shown = [f"**{v:.1f}**" if v > best - 0.05 else f"{v:.1f}" for v in line]
        lines.append(f"| {name} | {each} | {' | '.join(shown)} |")
    return lines


def plot_curves(accuracy: pd.DataFrame, path: Path) -> None:
    """Accuracy by labels a class: one panel a data set, and the mean."""
    names = [*dict.fromkeys(accuracy.index.get_level_values("data"))]
    figure, axes = plt.subplots(2, 5, figsize=(15, 6), layout="constrained")
    panels = {name: accuracy.loc[name] for name in names}
    panels["mean of all"] = accuracy.groupby(level="labels").mean()
    for axis, (name, table) in zip(axes.flat, panels.items(), strict=False):
        for method in METHODS:
            style = {"color": "black", "lw": 2.5, "zorder": 3} if method == OURS else {"lw": 1.2}
            axis.plot(table.index, table[method], marker=".", label=method, **style)
        axis.set(title=name, xscale="log", xticks=LABELS, xticklabels=LABELS)
        axis.minorticks_off()
    figure.supxlabel("labels a class")
    figure.supylabel("accuracy on hidden labels, %")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=7)
    save(figure, path)


def plot_reliability(calibration: pd.DataFrame, path: Path) -> list[str]:
    """Share of right answers by stated probability; also the expected calibration errors."""
    figure, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
    axis.plot([0, 1], [0, 1], color="grey", lw=1, ls=":")
    lines = ["| labels a class | stated, mean | right | calibration error |", "|---|---|---|---|"]
    for each in LABELS:
        part = calibration[calibration.labels == each]
        # Every data set and draw counts the same, however many rows it has.
        share = part.rows / part.groupby(["data", "draw"]).rows.transform("sum")
        weighed = part.assign(n=share, p=share * part.stated, r=share * part.right)
        bins = weighed.groupby("bin")[["n", "p", "r"]].sum()
        axis.plot(bins.p / bins.n, bins.r / bins.n, marker="o", ms=3, label=f"{each}")
        cases = weighed.groupby(["data", "labels", "bin"])[["n", "p", "r"]].sum()
        error = (cases.p - cases.r).abs().sum() / cases.n.sum()
        stated, right = bins.p.sum() / bins.n.sum(), bins.r.sum() / bins.n.sum()
        lines.append(f"| {each} | {100 * stated:.1f} % | {100 * right:.1f} % | {100 * error:.1f} |")
    axis.set(xlabel="probability stated for the label", ylabel="share of labels that are right")
    axis.legend(title="labels a class")
    save(figure, path)
    return lines


def save(figure: plt.Figure, path: Path) -> None:
    """As PNG and SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path.with_suffix(".png"), dpi=110)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Replace the measured part of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("docs/results"))
    parser.add_argument("--page", type=Path, default=Path("docs/accuracy.md"))
    options = parser.parse_args()
    results = pd.read_csv(options.results / "accuracy.csv")
    calibration = pd.read_csv(options.results / "calibration.csv")
    accuracy, balanced = cells(results, "accuracy"), cells(results, "balanced")
    images = options.page.parent / "img"
    plot_curves(accuracy, images / "accuracy")
    reliability = plot_reliability(calibration, images / "reliability")
    below = losses(results, accuracy)
    text = [
        BEGIN,
        *summary(accuracy, balanced),
        "",
        "![Accuracy by labels a class](img/accuracy.png)",
        "",
        f"Below the best peer by more than {MARGIN:g} points and one standard error, in "
        f"{len(below)} of {len(accuracy)} cells:",
        "",
        "| data | labels a class | biglp | best peer | which | behind by |",
        "|---|---|---|---|---|---|",
        *below,
        "",
        "<details><summary>Every cell</summary>",
        "",
        *whole_table(accuracy),
        "",
        "</details>",
        "",
        "### Are the probabilities right?",
        "",
        "![Reliability](img/reliability.png)",
        "",
        *reliability,
        END,
    ]
    page = options.page.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    options.page.write_text(before + "\n".join(text) + after)


if __name__ == "__main__":
    main()
