"""Plots of docs/accuracy.md."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from accuracy_data import AT_RANDOM, PER_CLASS
from accuracy_methods import OURS

COUNTS = {"class": PER_CLASS, "random": AT_RANDOM}
LABELS = {"class": "labels a class", "random": "labels at random"}


def curves(table: pd.DataFrame, how: str, figure: str, path: Path) -> None:
    """A figure by labels: one panel a data set, the mean over sizes in it, and the mean of all."""
    table = table.xs(how, level="how")
    panels = {
        name: table.xs(name, level="data").groupby(level="labels").mean()
        for name in table.index.get_level_values("data").unique()
    }
    panels["mean of all"] = table.groupby(level="labels").mean()
    lines = -(-len(panels) // 5)
    drawing, axes = plt.subplots(lines, 5, figsize=(15, 2.9 * lines + 0.6), layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (name, values) in zip(axes.flat, panels.items(), strict=False):
        for method in values.columns:
            style = {"color": "black", "lw": 2.5, "zorder": 3} if method == OURS else {"lw": 1.2}
            axis.plot(values.index, values[method], marker=".", label=method, **style)
        counts = [count for count in COUNTS[how] if count in values.index]
        axis.set(title=name, xscale="log", xticks=counts, xticklabels=counts)
        axis.minorticks_off()
    drawing.supxlabel(LABELS[how])
    drawing.supylabel(figure)
    handles = axes.flat[0].get_legend_handles_labels()
    drawing.legend(*handles, loc="outside upper center", ncols=6)
    save(drawing, path)


def reliability(calibration: pd.DataFrame, path: Path) -> None:
    """Share of right answers by stated probability, for labels of each class and at random."""
    drawing, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained", sharey=True)
    for axis, how in zip(axes, COUNTS, strict=True):
        axis.plot([0, 1], [0, 1], color="grey", lw=1, ls=":")
        for count in COUNTS[how]:
            here = calibration[(calibration.how == how) & (calibration.labels == count)]
            if here.empty:
                continue
            # Every data set, size and draw counts the same, however many rows it has.
            whole = here.groupby(["data", "rows", "draw"]).hidden.transform("sum")
            share = here.hidden / whole
            bins = (
                pd.DataFrame({"n": share, "p": share * here.stated, "r": share * here.right})
                .groupby(here.bin)
                .sum()
            )
            # A bin with next to nothing in it says nothing.
            bins = bins[bins.n > 0.002 * bins.n.sum()]
            axis.plot(bins.p / bins.n, bins.r / bins.n, marker="o", ms=3, label=f"{count:,}")
        axis.set(xlabel="probability stated for the label", xticks=np.linspace(0, 1, 6))
        axis.legend(title=LABELS[how])
    axes[0].set_ylabel("share of labels that are right")
    save(drawing, path)


def save(drawing: plt.Figure, path: Path) -> None:
    """As PNG and SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path.with_suffix(".png"), dpi=110)
    drawing.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(drawing)
