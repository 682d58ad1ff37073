"""Ratios to one read pass, by commit, as ``make bench`` wrote them."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

HISTORY = Path.cwd().parent / "results" / "history.csv"  # Sphinx draws in the folder of this file

with HISTORY.open(encoding="utf-8", newline="") as file:
    lines = list(csv.DictReader(file))
runs = list(dict.fromkeys((line["date"], line["commit"], line["machine"]) for line in lines))
cases = list(dict.fromkeys(line["case"] for line in lines))
figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
for case in cases:
    own = [line for line in lines if line["case"] == case]
    places = [runs.index((line["date"], line["commit"], line["machine"])) for line in own]
    axes.plot(places, [float(line["ratio"]) for line in own], "o-", label=case)
axes.set(ylabel="read passes", yscale="log", xticks=range(len(runs)))
axes.set_xticklabels([f"{date}\n{commit}" for date, commit, _ in runs], fontsize=8)
axes.margins(x=0.3)
axes.grid(axis="y", which="both", alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
