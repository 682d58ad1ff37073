"""How budgets from 250 MB to 1.6 GB are shared out for 10 M rows × 100, before any is read."""

import matplotlib.pyplot as plt
import numpy as np

from biglp._core.settings import Settings
from biglp._core.size import Size
from biglp._engines import ThreadEngine
from biglp._fit.plan import plan_fit

PARTS = {
    "process": "Python and libraries",
    "labels": "labels",
    "small": "sums and small arrays",
    "blocks": "blocks in work",
    "kept": "features between sweeps",
}
COLOURS = ["#9fb3cf", "#d1495b", "#edae49", "#1f77b4", "#66a182"]
BUDGETS = [250, 800, 1200, 1600]

size = Size(10_000_000, 100, 4, 1_000, 100, np.dtype(np.float32))
figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
for place, budget in enumerate(BUDGETS):
    given = {"factor": "nystrom", "n_landmarks": 30, "memory": f"{budget}MB"}
    plan = plan_fit(Settings.of(given), size, ThreadEngine(2))
    left = 0.0
    for (part, name), colour in zip(PARTS.items(), COLOURS, strict=True):
        taken = getattr(plan, part) / 1e6
        axes.barh(place, taken, left=left, color=colour, label=name if place == 3 else None)
        left += taken
    if plan.wanted > plan.kept:
        rest = f"{(plan.wanted - plan.kept) / 1e6:,.0f} MB of features in a file"
        axes.text(max(left, budget) + 20, place, rest, va="center")  # not across the line
    axes.plot([budget, budget], [place - 0.45, place + 0.45], color="black", lw=2)
axes.set(yticks=range(len(BUDGETS)), yticklabels=[f"{each} MB" for each in BUDGETS])
axes.set(xlabel="MB planned; the black line is the budget", ylabel="memory=")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.02, -0.02), fontsize=8)
axes.set_xlim(0, 2_150)
