"""
GLNP: two solvers on their way down
===================================

GLNP learns the low-rank factor F of the graph by making ‖X − FFᵀX‖² small. The paper has two solvers:
accelerated projected gradient, and multiplicative updates. Both start from the same F; how far each one
is after so many iterations.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation

ITERATIONS = 120
warnings.simplefilter("ignore")  # stopping early is the point here
X, truth = load_digits(return_X_y=True)
y = np.where(np.arange(len(X)) < 100, truth, -1)
steps = np.unique(np.geomspace(1, ITERATIONS, 9).astype(int))
solvers = {"glnp": "accelerated gradient", "glnp-mu": "multiplicative updates"}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for (factor, name), colour in zip(solvers.items(), ("#0072b2", "#d55e00"), strict=True):
    objective, accuracy = [], []
    for step in steps:
        finer = {"start": "uniform", "max_iter": int(step), "tol": 0.0}
        model = LowRankLabelPropagation(factor=factor, n_landmarks=20, factor_params=finer).fit(
            X, y
        )
        objective.append(model.report_["objective"])
        accuracy.append(100 * (model.transduction_ == truth)[y == -1].mean())
    left.plot(steps, objective, "o-", color=colour, label=name)
    right.plot(steps, accuracy, "o-", color=colour, label=name)
    print(f"{name:24} objective {objective[-1]:.4g}, {accuracy[-1]:.1f} % right")
left.set(ylabel="‖X − FFᵀX‖² / ‖X‖²", title="how near FFᵀX comes to X")
right.set(ylabel="% of hidden digits found", title="what its labels are worth")
for axes in (left, right):
    axes.set(xlabel="iterations", xscale="log", xticks=[1, 10, 100], xticklabels=[1, 10, 100])
    axes.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False)
plt.show()

# %%
# From a random start both stay on a plateau first, on which all rows look alike and every label is a
# guess; the gradient leaves it after some twenty iterations, multiplicative updates after a hundred. That is
# why biglp starts both from a clustering unless ``start="uniform"`` asks for the paper's own.
