"""
A graph of your own
===================

Sometimes the ties are the data: papers that cite each other, accounts that share a device, places that a
road joins. Here 1,500 people live in 5 groups and know 8 others on average, three in four of them
from their own group. Ten people of each group are known; ``factor="precomputed"`` takes the ties as
they are.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from biglp import LowRankLabelPropagation

PEOPLE, GROUPS, KNOWN = 1_500, 5, 10
rng = np.random.default_rng(0)
group = rng.integers(GROUPS, size=PEOPLE)
inside, outside = 6 / (PEOPLE / GROUPS), 2 / PEOPLE
chance = np.where(group[:, None] == group, inside, outside)
ties = sparse.csr_array(np.triu(rng.random((PEOPLE, PEOPLE)) < chance, 1), dtype=float)
ties = ties + ties.T

y = np.full(PEOPLE, -1)
for label in range(GROUPS):
    y[rng.choice(np.flatnonzero(group == label), KNOWN, replace=False)] = label
model = LowRankLabelPropagation(factor="precomputed").fit(ties, y)
right = (model.transduction_ == group)[y == -1]
print(f"{right.mean():.1%} of {len(right):,} people found, from {GROUPS * KNOWN} that are known")

# %%
# The matrix of ties, people in the order of the group that was found: blocks, where the answer is right.

order = np.argsort(model.transduction_, kind="stable")
figure, (before, after) = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
before.spy(ties, markersize=0.6, color="grey")
before.set(title="ties, as they came", xticks=[], yticks=[])
after.spy(ties[order][:, order], markersize=0.6, color="#1f77b4")
after.set(title=f"ordered by label: {right.mean():.0%} right", xticks=[], yticks=[])
plt.show()
