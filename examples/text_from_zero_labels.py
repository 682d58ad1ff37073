"""
Texts, from zero labels
=======================

A thousand docstrings of NumPy, SciPy and scikit-learn, and the question which library each is from (their
names are taken out). Nobody has labelled anything. :meth:`~biglp.LowRankLabelPropagation.suggest_first`
says which texts to read first.
"""

import inspect
import re
import warnings
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from biglp import LowRankLabelPropagation

TEXTS, ROUNDS = 400, 4
MODULES = {
    "arrays": ["numpy", "numpy.linalg", "numpy.random", "numpy.fft"],
    "statistics": ["scipy.stats", "scipy.stats.mstats"],
    "machine learning": [
        f"sklearn.{part}"
        for part in ("linear_model", "ensemble", "cluster", "preprocessing", "metrics", "svm")
    ],
}
warnings.simplefilter("ignore")


def texts_of(modules):
    """First paragraphs of the docstrings of all public functions and classes."""
    found = {}
    for module in map(import_module, modules):
        for name in dir(module):
            text = inspect.getdoc(getattr(module, name)) or ""
            words = re.sub(r"numpy|scipy|sklearn|scikit-learn|\bnp\b|>>>.*", " ", text[:600])
            if not name.startswith("_") and len(words) > 100:
                found[words] = None
    return list(found)[:TEXTS]


groups = [texts_of(modules) for modules in MODULES.values()]
texts = sum(groups, [])
truth = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
X = CountVectorizer(stop_words="english", min_df=2).fit_transform(texts).astype(np.float64)
print(f"{X.shape[0]:,} texts, {X.shape[1]:,} words")

# %%
# Nine texts to begin with, then six more in each round, where labels help most; beside it, as many
# texts drawn at random.

model = LowRankLabelPropagation()
y = np.full(len(texts), -1)
rows = model.suggest_first(X, 9)
print("to read first:", texts[rows[0]].strip().splitlines()[0][:70])
counts, suggested, random = [], [], []
for number in range(ROUNDS):
    y[rows] = truth[rows]
    model.fit(X, y)
    counts.append(int((y != -1).sum()))
    suggested.append(100 * (model.transduction_ == truth).mean())
    shares = []
    for seed in range(3):
        some = np.random.default_rng([seed, number]).choice(len(texts), counts[-1], replace=False)
        drawn = np.full(len(texts), -1)
        drawn[some] = truth[some]
        shares.append((LowRankLabelPropagation().fit(X, drawn).transduction_ == truth).mean())
    random.append(100 * np.mean(shares))
    rows = model.suggest(6)

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.plot(counts, suggested, "o-", color="#d1495b", label="suggested from zero labels on")
axes.plot(counts, random, "o-", color="#1f77b4", label="at random, mean of three draws")
axes.axhline(
    100 * np.bincount(truth).max() / len(truth), color="grey", ls=":", label="largest class"
)
axes.set(xlabel="texts that were read", ylabel="% of all texts right", xticks=counts)
axes.spines[["top", "right"]].set_visible(False)
axes.set_title(
    f"{counts[0]} suggested texts: {suggested[0]:.0f} % right, {counts[0]} random ones: {random[0]:.0f} %"
)
axes.legend(frameon=False)
plt.show()
