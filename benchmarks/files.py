"""From a file of simulated rows to a file of labels: seconds, memory and accuracy.

Each method is run as a user would, by the command line in a process of its own. Its time is set
beside one plain sequential read of the same file in the same run, its memory is the peak of what is
resident without clean file pages, and its labels are compared with the simulated truth.

Run with:  python benchmarks/files.py 10M [--file sim.npy] [--memory 4GB] [--methods random,...].
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

METHODS = {
    "random": ["--factor", "nystrom", "--landmarks", "random"],
    "kmeans": ["--factor", "nystrom", "--landmarks", "kmeans"],
    "kmeans-full": ["--factor", "nystrom", "--landmarks", "kmeans-full"],
    "anchors": ["--factor", "anchors"],
}
READ_BYTES = 16 << 20
BIGLP = [sys.executable, "-m", "biglp"]


def sequential_read(path: Path) -> float:
    """Seconds of one plain read of the file, dropped from the page cache first."""
    import os

    buffer = bytearray(READ_BYTES)
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.perf_counter()
        while file.readinto(buffer):
            pass
    return time.perf_counter() - began


def peak_memory(process: subprocess.Popen[bytes], every: float = 0.05) -> int:
    """Largest anonymous resident memory of a process while it runs, in bytes."""
    peak = 0
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        try:
            lines = status.read_text(encoding="ascii").splitlines()
        except OSError:
            break
        used = [line.split()[1] for line in lines if line.startswith(("RssAnon", "RssShmem"))]
        peak = max(peak, 1024 * sum(map(int, used)))
        time.sleep(every)
    return peak


def run(path: Path, method: str, k: int, memory: str, out: Path) -> dict[str, float]:
    """Run one method and return its figures."""
    labels = path.with_name(f"{path.stem}.labels.npy")
    command = [*BIGLP, "fit", str(path), "--labels", str(labels), "-o", str(out), "--overwrite"]
    command += ["-k", str(k), "--memory", memory, "--alpha", "0.9", "--class-balance", "mass"]
    command += ["--json", *METHODS[method]]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    found: dict[str, int] = {}
    watch = threading.Thread(target=lambda: found.update(peak=peak_memory(process)))
    watch.start()
    printed, _ = process.communicate()
    seconds = time.perf_counter() - began
    watch.join()
    if process.returncode:
        raise SystemExit(f"biglp fit ended with {process.returncode}")
    steps = {step["step"]: step["seconds"] for step in json.loads(printed)["steps"]}
    answer = np.load(out / "labels.npy", mmap_mode="r")
    truth = np.load(path.with_name(f"{path.stem}.truth.npy"), mmap_mode="r")
    accuracy = float(np.mean(np.asarray(answer) == np.asarray(truth)))
    return {"seconds": seconds, "peak": found["peak"], "accuracy": accuracy, "steps": steps}


def main() -> None:
    """Simulate the file where there is none, then read it and run each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", help="number of rows, such as 10M")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--file", type=Path, help="keep the simulated rows here")
    parser.add_argument("-k", type=int, default=20)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "sim.npy"
        if not path.exists():
            shape = [options.rows, str(options.features)]
            subprocess.run([*BIGLP, "simulate", *shape, "-o", str(path)], check=True)
        read = sequential_read(path)
        size = path.stat().st_size
        print(f"{path.name}: {size / 1e9:.1f} GB, one sequential read {read:.1f} s", flush=True)
        for method in options.methods.split(","):
            found = run(path, method, options.k, options.memory, Path(folder) / "out")
            steps = ", ".join(f"{name} {spent:.1f}" for name, spent in found["steps"].items())
            print(
                f"{method:12} k={options.k}: {found['seconds']:.1f} s = "
                f"{found['seconds'] / read:.2f} reads, peak {found['peak'] / 2**20:,.0f} MB, "
                f"accuracy {found['accuracy']:.4f} ({steps})",
                flush=True,
            )


if __name__ == "__main__":
    main()
