"""One sum of the same 4,000 numbers, added in 200 orders: rounded, and in slices."""

import matplotlib.pyplot as plt
import numpy as np

from biglp._engines.exact import Slices

rng = np.random.default_rng(0)
numbers = rng.normal(size=4_000) * 10.0 ** rng.uniform(0, 6, size=4_000)
orders = np.column_stack([rng.permutation(numbers) for _ in range(200)])
rounded = np.add.accumulate(orders, axis=0)[-1]
sums = Slices(200)
for row in orders:
    sums.add(row)
exact = np.unique(sums.values())
assert len(exact) == 1

figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
values, counts = np.unique(rounded - exact[0], return_counts=True)
axes.bar(values, counts, width=np.ptp(values) / 60, color="#9fb3cf", label="added and rounded")
axes.axvline(0, color="#d1495b", lw=2, label="in slices: one value, all 200 times")
axes.set(xlabel="sum of 4,000 numbers, less the exact one", ylabel="of 200 orders")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
