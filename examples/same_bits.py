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

ROWS, FEATURES = 40_000, 20
folder = tempfile.TemporaryDirectory()
here = Path(folder.name)
biglp = [sys.executable, "-m", "biglp"]


def run(*words, launcher=()):
    """Run the command line, and stop where it fails."""
    subprocess.run([*launcher, *biglp, *words, "--quiet"], cwd=here, check=True, timeout=300)


run("simulate", str(ROWS), str(FEATURES), "-o", "sim.npy")
fit = ["fit", "sim.npy", "--labels", "sim.labels.npy", "--factor", "anchors", "--probabilities"]
mpiexec = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2"]
run(*fit, "-o", "threads")
run(*fit, "-o", "mpi", "--engine", "mpi", launcher=mpiexec)
run(*fit, "-o", "dask", "--engine", "dask", "--threads", "2")
answers = {each: here / each for each in ("threads", "mpi", "dask")}
shares = {each: np.load(path / "probabilities.npy") for each, path in answers.items()}
differ = {each: int((found != shares["threads"]).sum()) for each, found in shares.items()}
print("probabilities that differ from those of threads:", differ)

# %%
# The same Gram matrix from plain float32 sums, the rows shared out among 1 to 12 processes. The largest
# difference to one process, beside that of biglp, which is zero and has no place on this axis:

rows = np.load(here / "sim.npy")
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
    ylim=(0, 1), yticks=[], title=f"biglp: of {shares['mpi'].size:,} probabilities, different"
)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
folder.cleanup()
