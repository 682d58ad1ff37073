"""Keep the ratios of a benchmark in ``docs/results/history.csv``, with commit and machine.

A ratio is seconds divided by those of one read pass over the same rows in the same run, so that
runs on different days and machines can be set beside each other.
"""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

HISTORY = Path(__file__).parents[1] / "docs" / "results" / "history.csv"
COLUMNS = ("date", "commit", "machine", "case", "ratio")


def commit() -> str:
    """Short hash of the commit that is checked out, "+" where files were changed since."""
    asked = ["git", "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"]
    try:
        said = subprocess.run(asked, cwd=HISTORY.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.strip()


def machine() -> str:
    """Kind of the processor and how many cores; nothing that names the machine itself."""
    kind = platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        lines = [line for line in cpus.read_text().splitlines() if line.startswith("model name")]
        kind = lines[0].partition(":")[2].strip() if lines else kind
    return f"{kind}, {os.cpu_count()} cores"


def keep(ratios: Mapping[str, float], path: Path = HISTORY) -> None:
    """Append a line for each case.

    Parameters
    ----------
    ratios : mapping of str to float
        Read passes that each case took.
    path : Path
        The table; begun with a line of names where there is none.
    """
    new = not path.exists()
    when = datetime.now(UTC).date().isoformat()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for case, ratio in ratios.items():
            writer.writerow([when, commit(), machine(), case, f"{ratio:.3f}"])
