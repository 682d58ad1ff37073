"""The first picture: 50 labelled digits among grey ones, and the same rows after a fit."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp.plot import MapDisplay

X, truth = load_digits(return_X_y=True)
given = np.random.default_rng(0).permutation(len(truth))[:50]
y = np.full(len(truth), -1)
y[given] = truth[given]
model = LowRankLabelPropagation().fit(X, y)
found = MapDisplay.from_estimator(model)
plt.close(found.figure_)
estimate = model.report_["estimated_accuracy"]
right = (model.transduction_ == truth)[y < 0].mean()

figure = plt.figure(figsize=(8, 3.6), layout="constrained")
before, after, bar = figure.subplot_mosaic("AB;CC", height_ratios=[8, 1]).values()
colours = plt.get_cmap("tab10")
places = np.concatenate([found.places, found.labelled_places])
places = rankdata(places, axis=0)  # crowded places are stretched
rows, labelled = places[: len(found.places)].T, places[len(found.places) :].T
before.scatter(*rows, s=6, color="#c4c9d1")
after.scatter(*rows, s=6, c=colours(found.labels))
for axes in (before, after):
    axes.scatter(*labelled, s=26, c=colours(found.labelled), edgecolors="black", lw=0.8)
    axes.set(xticks=[], yticks=[])
before.set_title("1,797 handwritten digits, 50 with a label", fontsize=10)
after.set_title("after fit: a colour is a predicted digit", fontsize=10)
low, high = (100 * end for end in estimate["interval"])
bar.plot([low, high], [0, 0], lw=7, color="#9fb3cf", solid_capstyle="butt")
bar.plot(100 * estimate["accuracy"], 0, "o", color="#1f77b4")
bar.plot(100 * right, 0, "|", ms=14, mew=2, color="#d1495b")
said = f"estimated {100 * estimate['accuracy']:.0f} % (90 % interval {low:.0f}–{high:.0f} %)"
bar.set(
    xlim=(0, 100), yticks=[], xlabel=f"right, in %: {said}; red: the truth, {100 * right:.0f} %"
)
bar.spines[["top", "left", "right"]].set_visible(False)
