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
# The same rows in a Gram matrix of plain float32 sums, shared out among 2 to 12 processes: how many of its
# numbers have other bits than with one process, beside the probabilities of biglp, of which none has.

one = rows.T @ rows
bars = {}
for count in (2, 3, 6, 12):
    parts = [part.T @ part for part in np.array_split(rows, count)]
    plain = np.sum(parts, axis=0, dtype=np.float32)
    bars[f"plain sums, {count} processes"] = 100 * (plain != one).mean()
for each, count in differ.items():
    bars[f"biglp, {each}"] = 100 * count / threads.label_distributions_.size

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
colours = ["#d1495b" if name.startswith("plain") else "#1f77b4" for name in bars]
drawn = axes.barh(list(bars), list(bars.values()), color=colours)
axes.bar_label(drawn, [f"{share:.0f} %" for share in bars.values()], padding=3)
axes.set(xlabel="% of numbers whose bits changed", xlim=(0, 100))
axes.invert_yaxis()
figure.suptitle("plain sums change with the number of processes, biglp does not", fontsize=11)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
folder.cleanup()
