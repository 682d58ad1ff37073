"""
Two MPI ranks, Dask and one machine: the same bits
==================================================

Sums over rows are rounded, so programs that share rows out usually give slightly different answers for
every number of processes. biglp adds without rounding until the end. One fit by threads, by two MPI
ranks and by two Dask workers, compared bit by bit; beside it, what plain float32 sums would do.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from biglp import LowRankLabelPropagation

ROWS, FEATURES, LANDMARKS = 10_000, 20, 200
folder = tempfile.TemporaryDirectory()
here = Path(folder.name)
rng = np.random.default_rng(0)
truth = rng.integers(3, size=ROWS)
rows = (rng.normal(size=(ROWS, FEATURES)) + 2 * rng.normal(size=(3, FEATURES))[truth]).astype("f4")
labels = np.where(rng.random(ROWS) < 0.01, truth, -1)
np.save(here / "rows.npy", rows)
np.save(here / "labels.npy", labels)

# %%
# Three ways to share out the work. MPI ranks are started by ``mpiexec``, as on a cluster:

settings = {"factor": "anchors", "n_landmarks": LANDMARKS}
threads = LowRankLabelPropagation(**settings).fit(rows, labels)
with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    dask = LowRankLabelPropagation(**settings, engine=client).fit(here / "rows.npy", labels)
command = [Path(sys.executable).parent / "mpiexec", "-n", "2", sys.executable, "-m", "biglp", "fit"]
command += ["rows.npy", "--labels", "labels.npy", "--factor", "anchors", "-o", "mpi", "--quiet"]
command += ["-k", str(LANDMARKS), "--threads", "1"]
subprocess.run([*command, "--engine", "mpi", "--probabilities"], cwd=here, check=True, timeout=300)

shares = {
    "threads": threads.label_distributions_,
    "2 Dask workers": dask.label_distributions_,
    "2 MPI ranks": np.load(here / "mpi" / "probabilities.npy"),
}
differ = {each: int((found != shares["threads"]).sum()) for each, found in shares.items()}
print("probabilities that differ from those of threads:", differ)

# %%
# The same Gram matrix from plain float32 sums, the rows shared out among 1 to 12 processes. The largest
# difference to one process, beside that of biglp, which is zero and has no place on this axis:

one = rows.T @ rows
counts = np.arange(2, 13)
errors = []
for count in counts:
    parts = [part.T @ part for part in np.array_split(rows, count)]
    errors.append(np.abs(np.sum(parts, axis=0, dtype=np.float32) - one).max() / np.abs(one).max())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.semilogy(counts, errors, "o-", color="#9fb3cf")
left.set(xlabel="processes", ylabel="largest relative difference", title="plain sums")
bars = right.bar(list(differ), list(differ.values()), color="#d1495b")
right.bar_label(bars, [f"{count}" for count in differ.values()])
right.set(
    ylim=(0, 1),
    yticks=[],
    title=f"biglp: of {threads.label_distributions_.size:,} probabilities, different",
)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
folder.cleanup()
