"""
Wrong labels, found
===================

400 digits have labels, and 32 of these labels are wrong. Nothing says which.
:meth:`~biglp.LowRankLabelPropagation.doubtful_labels` asks of each labelled row what all the others say
of it, and ranks the labels by how probably they are wrong.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation

LABELS, WRONG = 400, 32
warnings.simplefilter("ignore")
X, truth = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
known = rng.choice(len(X), LABELS, replace=False)
y = np.full(len(X), -1)
y[known] = truth[known]
wrong = rng.choice(known, WRONG, replace=False)
y[wrong] = (truth[wrong] + rng.integers(1, 10, WRONG)) % 10

model = LowRankLabelPropagation().fit(X, y)
doubtful = model.doubtful_labels()
named = np.isin(doubtful.rows, wrong)
print(f"{len(doubtful.rows)} labels in doubt, {named.sum()} of them among the {WRONG} wrong ones")

# %%
# The first twelve of the list, with the label that was given and the one that is suggested:

figure, every = plt.subplots(2, 6, figsize=(10, 4), layout="constrained")
for axes, row, given, better in zip(
    every.flat, doubtful.rows, doubtful.labels, doubtful.suggested_labels, strict=False
):
    axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
    colour = "#2a7f3f" if row in wrong else "#d1495b"
    axes.set_title(f"said {given}, rather {better}", fontsize=10, color=colour)
for axes in every.flat:
    axes.axis("off")
figure.suptitle("green: the label was made wrong; red: it was right")
plt.show()
