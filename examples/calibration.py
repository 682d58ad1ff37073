"""
Are the probabilities right?
============================

Of the rows that a method calls "80 % sure", eight of ten should be right. Noisy digits, which lie in
clusters, and a made-up table whose classes overlap in twelve places, the hard case: how sure each
method is, and how often right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from biglp import LowRankLabelPropagation

ROWS = 4_000
rng = np.random.default_rng(1)
digits, digit = load_digits(return_X_y=True)
table, group = make_classification(
    ROWS, 15, n_informative=6, n_classes=3, n_clusters_per_class=4, random_state=1
)
problems = {
    "digits with noise, 100 labels": (digits + 4 * rng.normal(size=digits.shape), digit, 100),
    "overlapping classes, 300 labels": (StandardScaler().fit_transform(table), group, 300),
}

# %%
# Each point is a tenth of the rows. On the line the method is honest; below it, too sure; above it, too
# modest.

figure, every = plt.subplots(1, 2, figsize=(10, 4.8), sharey=True, layout="constrained")
for axes, (title, (X, truth, labels)) in zip(every, problems.items(), strict=True):
    known = rng.choice(len(X), labels, replace=False)
    y = np.full(len(X), -1)
    y[known] = truth[known]
    hidden = y == -1
    logistic = LogisticRegression(max_iter=2_000).fit(X[known], truth[known])
    shares = {
        "biglp": LowRankLabelPropagation().fit(X, y).label_distributions_,
        "label spreading (knn)": LabelSpreading(kernel="knn").fit(X, y).label_distributions_,
        "logistic regression": logistic.predict_proba(X),
    }
    axes.plot([10, 100], [10, 100], color="grey", lw=1)
    for name, found in shares.items():
        sure, right = found[hidden].max(axis=1), found[hidden].argmax(axis=1) == truth[hidden]
        bins = np.array_split(np.argsort(sure, kind="stable"), 10)
        stated = np.array([sure[rows].mean() for rows in bins])
        observed = np.array([right[rows].mean() for rows in bins])
        error = 100 * np.abs(stated - observed).mean()
        axes.plot(100 * stated, 100 * observed, "o-", label=f"{name}: off by {error:.0f} points")
        print(f"{title}: {name:22} {right.mean():.1%} right, {sure.mean():.1%} sure")
    axes.set(title=title, xlabel="how sure, %")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
every[0].set_ylabel("how often right, %")
plt.show()
