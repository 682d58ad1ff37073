"""From a file of simulated rows to a file of labels: seconds, memory and accuracy.

Each method is run as a user would, by the command line in a process of its own. Its time is set
beside one plain sequential read of the same file in the same run, its memory is the peak of what is
resident without clean file pages, and its labels are compared with the simulated truth.

Run with:  python benchmarks/files.py 10M [--file sim.npy] [--memory 4GB] [--methods random,...].
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from history import keep
from paper.scale import METHODS, run_fit, sequential_read, simulate


def main() -> None:
    """Simulate the file where there is none, then read it and run each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", help="number of rows, such as 10M")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--file", type=Path, help="keep the simulated rows here")
    parser.add_argument("-k", type=int, default=20)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--keep", action="store_true", help="append the ratios to the history")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "sim.npy"
        simulate(path, options.rows, options.features)
        read = sequential_read(path)
        size = path.stat().st_size
        print(f"{path.name}: {size / 1e9:.1f} GB, one sequential read {read:.1f} s", flush=True)
        ratios = {}
        for method in options.methods.split(","):
            found = run_fit(path, method, options.k, options.memory, Path(folder) / "out")
            case = f"{method} k={options.k}, file of {options.rows} in {options.memory}"
            ratios[case] = found["seconds"] / read
            steps = ", ".join(f"{name} {spent:.1f}" for name, spent in found["steps"].items())
            print(
                f"{method:12} k={options.k}: {found['seconds']:.1f} s = "
                f"{found['seconds'] / read:.2f} reads, peak {found['peak'] / 2**20:,.0f} MB, "
                f"accuracy {found['accuracy']:.4f} ({steps})",
                flush=True,
            )
        if options.keep:
            keep(ratios)


if __name__ == "__main__":
    main()
