"""The table of scikit-learn issue #6555: 697,526 × 15, 13,731 labels, 2 % in the minority class.

``sklearn.semi_supervised.LabelSpreading`` wants a 697,526 × 697,526 matrix for it, 3.9 TB, and its
users saw memory run out, programs hang, or NaN in a third of the rows. The table itself is
not public; this one has its shape, with classes made of several overlapping clusters on features of
different scales.

Run it with ``python examples/imbalanced_700k.py``.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from sklearn.metrics import balanced_accuracy_score, recall_score

from biglp import LowRankLabelPropagation

N_ROWS, N_FEATURES, N_LABELS = 697_526, 15, 13_731
MINORITY_SHARE = 0.02
CLUSTERS = 12


def simulate(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels with -1 where unknown, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(N_ROWS) < MINORITY_SHARE).astype(np.int64)
    centres = 1.3 * rng.normal(size=(2, CLUSTERS, N_FEATURES))
    cluster = rng.integers(CLUSTERS, size=N_ROWS)
    rows = rng.normal(size=(N_ROWS, N_FEATURES)) + centres[truth, cluster]
    rows *= 10.0 ** rng.uniform(-2, 3, size=N_FEATURES)
    labels = np.full(N_ROWS, -1)
    known = rng.choice(N_ROWS, N_LABELS, replace=False)
    labels[known] = truth[known]
    return rows, labels, truth


def peak_memory_gb() -> float:
    """Most memory this process has had in use so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def main() -> None:
    """Simulate, fit, and print accuracy, time and memory."""
    rows, labels, truth = simulate()
    print(f"{N_ROWS:,} rows × {N_FEATURES} features, {N_LABELS:,} labels,")
    print(f"{(truth == 1).mean():.1%} of the rows in the minority class; {peak_memory_gb():.2f} GB")
    began = time.perf_counter()
    model = LowRankLabelPropagation(verbose=True).fit(rows, labels)
    seconds = time.perf_counter() - began
    unlabelled = labels == -1
    found, right = model.transduction_[unlabelled], truth[unlabelled]
    print(f"time               {seconds:.1f} s")
    print(f"peak memory        {peak_memory_gb():.2f} GB, the table itself included")
    print(f"rows with NaN      {int(np.isnan(model.label_distributions_).any(axis=1).sum())}")
    print(f"accuracy           {(found == right).mean():.4f}")
    print(f"balanced accuracy  {balanced_accuracy_score(right, found):.4f}")
    print(f"minority recall    {recall_score(right, found, pos_label=1):.4f}")


if __name__ == "__main__":
    main()
