"""
Numbers instead of classes
==========================

The Swiss roll is a rolled-up sheet. The number to be found is how far along the sheet a row lies; twenty
rows are measured. Ridge regression and neighbours look through the sheet, the graph follows it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from biglp import LowRankLabelPropagationRegressor

ROWS, LABELS = 3_000, 20
X, truth = make_swiss_roll(ROWS, noise=0.1, random_state=0)
known = np.random.default_rng(0).choice(ROWS, LABELS, replace=False)
y = np.full(ROWS, np.nan)  # NaN is "not measured"
y[known] = truth[known]

answers = {
    "ridge": Ridge().fit(X[known], truth[known]).predict(X),
    "3 nearest": KNeighborsRegressor(3).fit(X[known], truth[known]).predict(X),
    "biglp": LowRankLabelPropagationRegressor().fit(X, y).transduction_,
}

figure, every = plt.subplots(2, 2, figsize=(8, 6.4), layout="constrained")
for axes, (name, found) in zip(every.flat, {"truth": truth, **answers}.items(), strict=True):
    error = np.sqrt(np.mean((found - truth) ** 2))
    axes.scatter(X[:, 0], X[:, 2], c=found, s=4, vmin=truth.min(), vmax=truth.max())
    axes.set(
        title="truth, and what is known" if name == "truth" else f"{name}: error {error:.2f}",
        xticks=[],
        yticks=[],
    )
    axes.set_frame_on(False)
every.flat[0].scatter(*X[known][:, [0, 2]].T, c="black", edgecolor="white", s=120, marker="*")
plt.show()
