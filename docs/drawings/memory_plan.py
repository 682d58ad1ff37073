"""How budgets from 250 MB to 1 GB are shared out for 5 million rows × 100, before any is read."""

import matplotlib.pyplot as plt
import numpy as np

from biglp._core.shape import Shape
from biglp._engines.local import ThreadEngine
from biglp._fit.memory import plan_memory
from biglp._fit.settings import Settings

PARTS = {
    "process": "Python and libraries",
    "labels": "labels",
    "small": "sums and small arrays",
    "blocks": "blocks in work",
    "wanted": "features between sweeps",
}
COLOURS = ["#9fb3cf", "#d1495b", "#edae49", "#1f77b4", "#66a182"]
BUDGETS = [250, 400, 600, 1000]

shape = Shape(5_000_000, 100, 4, 1_000, 100, np.dtype(np.float32))
figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
for place, budget in enumerate(BUDGETS):
    given = {"factor": "nystrom", "n_landmarks": 30, "memory": f"{budget}MB"}
    plan = plan_memory(Settings.of(given), shape, ThreadEngine(2))
    left = 0.0
    for (part, name), colour in zip(PARTS.items(), COLOURS, strict=True):
        size = getattr(plan, part) / 1e6
        if part == "wanted" and not plan.stores_features:
            beside = max(left, budget) + 12  # not across the line of the budget
            axes.text(beside, place, f"{size:.0f} MB of features in a file", va="center")
            continue
        axes.barh(place, size, left=left, color=colour, label=name if place == 3 else None)
        left += size
    axes.plot([budget, budget], [place - 0.45, place + 0.45], color="black", lw=2)
axes.set(yticks=range(len(BUDGETS)), yticklabels=[f"{each} MB" for each in BUDGETS])
axes.set(xlabel="MB planned; the black line is the budget", ylabel="memory=")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.02, -0.02), fontsize=8)
