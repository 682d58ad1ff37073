"""
Larger than memory, with the memory drawn
=========================================

A file of 320 MB is labelled with a budget of 100 MB. While the command runs, its memory is read twenty
times a second: what only it can give back, not pages of the file that the system keeps for anyone.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import psutil

ROWS, FEATURES, BUDGET = 1_000_000, 80, 100
folder = tempfile.TemporaryDirectory()
here = Path(folder.name)
biglp = [sys.executable, "-m", "biglp"]
subprocess.run(
    [*biglp, "simulate", str(ROWS), str(FEATURES), "-o", "sim.npy", "--quiet"], cwd=here, check=True
)
size = (here / "sim.npy").stat().st_size / 1e6
print(f"{ROWS:,} × {FEATURES} rows, {size:,.0f} MB")

# %%
# The fit, and what it takes:

command = [*biglp, "fit", "sim.npy", "--labels", "sim.labels.npy", "-o", "out", "--quiet"]
command += ["--memory", f"{BUDGET}MB", "--factor", "nystrom", "-k", "50", "--alpha", "0.9"]
began, times, taken = time.perf_counter(), [], []
running = psutil.Popen(command, cwd=here)
while running.poll() is None:
    try:
        memory = running.memory_info()
    except psutil.Error:  # it ended just now
        break
    times.append(time.perf_counter() - began)
    taken.append((memory.rss - getattr(memory, "shared", 0)) / 1e6)
    time.sleep(0.05)
assert running.wait() == 0

figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
axes.fill_between(times, taken, color="#1f77b4", alpha=0.25)
axes.plot(times, taken, color="#1f77b4", label=f"taken, {max(taken):.0f} MB at most")
axes.axhline(BUDGET, color="#d1495b", lw=2, label=f"--memory {BUDGET}MB")
axes.axhline(size, color="grey", ls="--", label=f"the file, {size:.0f} MB")
axes.set(xlabel="seconds", ylabel="MB", ylim=(0, 1.3 * size), xlim=(0, max(times)))
axes.set_title(f"{size:.0f} MB of rows, labelled in {max(taken):.0f} MB of memory")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="upper right", ncols=3)
plt.show()
folder.cleanup()
