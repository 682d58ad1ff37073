"""
Few labels on digits, beside peers
==================================

1,797 handwritten digits; 1 to 20 labels of each, the others hidden. Every method sees the same rows and
labels. Only biglp and label spreading use the rows that have no label.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from biglp import LowRankLabelPropagation

DRAWS = 3
warnings.simplefilter("ignore")  # one label a class is little, and several methods say so
X, truth = load_digits(return_X_y=True)
methods = {
    "biglp": (LowRankLabelPropagation(), True),
    "label spreading (knn)": (LabelSpreading(kernel="knn"), True),
    "logistic regression": (LogisticRegression(), False),
    "random forest": (RandomForestClassifier(random_state=0), False),
    "1 nearest label": (KNeighborsClassifier(1), False),
}

# %%
# The same labels for all of them:

counts = [1, 2, 5, 10, 20]
scores = {name: np.zeros((len(counts), DRAWS)) for name in methods}
for draw in range(DRAWS):
    rng = np.random.default_rng(draw)
    order = [rng.permutation(np.flatnonzero(truth == digit)) for digit in range(10)]
    for place, count in enumerate(counts):
        known = np.concatenate([rows[:count] for rows in order])
        hidden = np.setdiff1d(np.arange(len(X)), known)
        y = np.full(len(X), -1)
        y[known] = truth[known]
        for name, (model, sees_all) in methods.items():
            model.fit(*(X, y) if sees_all else (X[known], truth[known]))
            found = model.transduction_[hidden] if sees_all else model.predict(X[hidden])
            scores[name][place, draw] = (found == truth[hidden]).mean()

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, found in scores.items():
    axes.plot(counts, 100 * found.mean(axis=1), "o-", label=name, lw=3 if name == "biglp" else 1.5)
axes.set(xscale="log", xticks=counts, xticklabels=counts)
axes.set(xlabel="labels of each digit", ylabel="% of hidden digits found")
axes.set_title(f"from one label of each digit biglp finds {scores['biglp'][0].mean():.0%}")
axes.spines[["top", "right"]].set_visible(False)
axes.grid(axis="y", alpha=0.3)
axes.legend(frameon=False)
plt.show()

# %%
# The unlabelled rows are worth most when labels are fewest.

for name, found in scores.items():
    print(f"{name:24}", " ".join(f"{100 * share:5.1f}" for share in found.mean(axis=1)))
