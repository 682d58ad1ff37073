"""
Two moons and what α does
=========================

Two labels, one in each moon. α is how far labels travel: near 0 each row listens to the labels
beside it, near 1 labels flow along the whole moon. biglp chooses α itself; here it is set by hand to
see what it does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from biglp import LowRankLabelPropagation

ROWS = 2_000
X, truth = make_moons(ROWS, noise=0.12, random_state=0)
known = [int(np.argmin(X[:, 0])), int(np.argmax(X[:, 0]))]  # the outer tip of either moon
y = np.full(ROWS, -1)
y[known] = truth[known]

figure, every = plt.subplots(2, 2, figsize=(8, 5.6), layout="constrained")
for alpha, axes in zip((0.5, 0.9, 0.99, 0.999), every.flat, strict=True):
    model = LowRankLabelPropagation(factor="anchors", alpha=alpha, scaling="none").fit(X, y)
    right = (model.transduction_ == truth).mean()
    axes.scatter(*X.T, c=model.label_distributions_[:, 1], cmap="coolwarm", s=4, vmin=0, vmax=1)
    axes.scatter(*X[known].T, c="black", s=60, marker="*")
    axes.set(title=f"α = {alpha}: {right:.0%} right", xticks=[], yticks=[])
    axes.set_frame_on(False)
plt.show()

# %%
# Both labels are at the far end of their moon. With a small α little of a label arrives at the other
# end, and a few noisy rows between the moons are enough to carry it across; with a large one it flows
# along where rows are dense.
