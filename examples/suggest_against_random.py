"""
Suggested labels against random ones
====================================

:meth:`~biglp.LowRankLabelPropagation.suggest` names the rows whose labels would help most. Ten at a
time, beside ten random ones at a time, from the same start: one label of each digit.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation

DRAWS, ROUNDS, BATCH = 3, 6, 10
warnings.simplefilter("ignore")
X, truth = load_digits(return_X_y=True)


def label_in_rounds(suggested, seed):
    """Share of right answers after each round of labels."""
    rng = np.random.default_rng(seed)
    y = np.full(len(X), -1)
    for digit in range(10):
        y[rng.choice(np.flatnonzero(truth == digit))] = digit
    model = LowRankLabelPropagation(random_state=seed).fit(X, y)
    right = [(model.transduction_ == truth).mean()]
    for _ in range(ROUNDS):
        unknown = np.flatnonzero(y == -1)
        rows = model.suggest(BATCH) if suggested else rng.choice(unknown, BATCH, replace=False)
        y[rows] = truth[rows]
        model.update_labels(rows, truth[rows])  # no further sweep over the rows
        right.append((model.transduction_ == truth).mean())
    return right


labels = 10 + BATCH * np.arange(ROUNDS + 1)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, suggested, colour in [("suggested", True, "#d1495b"), ("random", False, "#1f77b4")]:
    every = 100 * np.array([label_in_rounds(suggested, seed) for seed in range(DRAWS)])
    axes.plot(labels, every.mean(axis=0), "o-", color=colour, label=name)
    axes.fill_between(labels, every.min(axis=0), every.max(axis=0), color=colour, alpha=0.15)
    print(f"{name:10}", " ".join(f"{share:5.1f}" for share in every.mean(axis=0)))
axes.set(xlabel="labels", ylabel="% of digits right")
axes.set_title("suggested labels teach more than random ones")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, title=f"{DRAWS} starts, mean and range")
plt.show()
