"""Ratios of ``make bench`` by commit: a panel for each setting, a colour for each method.

Processor seconds are open circles on a broken line.
"""

import csv
import re
from pathlib import Path

import matplotlib.pyplot as plt

HISTORY = Path.cwd().parent / "results" / "history.csv"  # Sphinx draws in the folder of this file
LAST = 8  # runs that are drawn
PROCESSOR = ", processor"  # ends the name of what was measured in processor seconds
SPEEDUP = "2 ranks beside 1"


def run(line: dict[str, str]) -> tuple[str, ...]:
    """Where a line was measured, as the axis says it."""
    kind = re.sub(r"\(R\)|\bProcessor\b|@.*|,.*", "", line["machine"])
    return line["date"], line["commit"], " ".join(kind.split())


def setting(line: dict[str, str]) -> str:
    """What a case's name says after its method."""
    return line["case"].removesuffix(PROCESSOR).partition(", ")[2]


def method(line: dict[str, str]) -> str:
    """What a case's name begins with."""
    return line["case"].partition(", ")[0]


with HISTORY.open(encoding="utf-8", newline="") as file:
    lines = list(csv.DictReader(file))
runs = list(dict.fromkeys(map(run, lines)))[-LAST:]
lines = [line for line in lines if run(line) in runs]
colours = {each: f"C{place}" for place, each in enumerate(dict.fromkeys(map(method, lines)))}
settings = list(dict.fromkeys(map(setting, lines)))
depth = (len(settings) + 1) // 2
figure, every = plt.subplots(
    depth, 2, figsize=(9, 3.1 * depth), sharex=True, squeeze=False, layout="constrained"
)
figure.get_layout_engine().set(hspace=0.08)
for axes, name in zip(every.flat, settings, strict=False):
    own = [line for line in lines if setting(line) == name]
    for case in dict.fromkeys(line["case"] for line in own):
        points = [line for line in own if line["case"] == case]
        axes.plot(
            [runs.index(run(line)) for line in points],
            [float(line["ratio"]) for line in points],
            "o--" if case.endswith(PROCESSOR) else "o-",
            mfc="white" if case.endswith(PROCESSOR) else None,
            color=colours[method(points[0])],
            label=method(points[0]),
        )
    unit = "times faster (higher is better)" if name == SPEEDUP else "read passes"
    axes.set(title=name, ylabel=unit, xticks=range(len(runs)), xlim=(-0.5, len(runs) - 0.5))
    axes.set_ylim(0, 1.45 * max(float(line["ratio"]) for line in own))  # room for the names
    axes.set_xticklabels(["\n".join(each) for each in runs], fontsize=8)
    axes.tick_params(labelbottom=True)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    shapes, names = axes.get_legend_handles_labels()
    named = dict(zip(names[::-1], shapes[::-1], strict=True))  # the first of each name stays
    axes.legend(named.values(), named, frameon=False, fontsize=8, loc="upper left", ncols=2)
for axes in every.flat[len(settings) :]:
    axes.axis("off")
