"""
700,000 rows, 2 % in the smaller class
======================================

The table of scikit-learn's issue #6555: 697,526 × 15, 13,731 labels, 2 % in the smaller class.
``sklearn.semi_supervised.LabelSpreading`` wants a 697,526 × 697,526 matrix for it, 3.9 TB, and its users
saw memory run out, programs hang, or NaN in a third of the rows. The table itself is not public; this
one has its shape, with classes made of several overlapping clusters on features of different scales.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score, precision_recall_curve

from biglp import LowRankLabelPropagation

ROWS, FEATURES, SHARE = 697_526, 15, 0.02
LABELS = ROWS * 13_731 // 697_526
CLUSTERS = 12

rng = np.random.default_rng(0)
truth = (rng.random(ROWS) < SHARE).astype(np.int64)
centres = 1.3 * rng.normal(size=(2, CLUSTERS, FEATURES))
cluster = rng.integers(CLUSTERS, size=ROWS)
rows = rng.normal(size=(ROWS, FEATURES)) + centres[truth, cluster]
rows *= 10.0 ** rng.uniform(-2, 3, size=FEATURES)  # features on very different scales
labels = np.full(ROWS, -1)
known = rng.choice(ROWS, LABELS, replace=False)
labels[known] = truth[known]

began = time.perf_counter()
model = LowRankLabelPropagation().fit(rows, labels)
seconds = time.perf_counter() - began

hidden = labels == -1
found, right = model.transduction_[hidden], truth[hidden]
print(f"{ROWS:,} rows in {seconds:.0f} s")
print(f"rows with NaN      {int(np.isnan(model.label_distributions_).any(axis=1).sum())}")
print(f"accuracy           {(found == right).mean():.4f}")
print(f"balanced accuracy  {balanced_accuracy_score(right, found):.4f}")

# %%
# How many of the rare rows are found, and how many of those named are rare, at every threshold. Choose
# your own by ``label_distributions_``.

precision, recall, _ = precision_recall_curve(right, model.label_distributions_[hidden, 1])
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(100 * recall, 100 * precision, color="#1f77b4", lw=2, label="biglp")
share, rare = (found & right).sum() / right.sum(), (found & right).sum() / max(found.sum(), 1)
axes.plot(100 * share, 100 * rare, "*", color="#d1495b", ms=16, label="its answer")
figure.suptitle(
    f"{share:.0%} of the rare rows are found, {rare:.0%} of those named are rare", fontsize=11
)
axes.axhline(100 * SHARE, color="grey", ls=":", label="at random")
axes.set(xlabel="% of the rare rows that are found", ylabel="% of those named that are rare")
axes.set(xlim=(0, 102), ylim=(0, 104))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="center left")
plt.show()
