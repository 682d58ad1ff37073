"""How far one must read to follow a row: the functions of biglp that a small fit calls.

Two runs are traced: ``fit`` of the estimator on an array, and ``biglp fit`` on a Parquet file. The
functions are put in the order of their first call; class bodies, lambdas and comprehensions are not
counted. A change of folder is one between two functions that follow each other in that order.

|                                 | functions | files | changes of folder |
|---------------------------------|-----------|-------|-------------------|
| release 0.1, array              |       247 |    47 |                83 |
| release 0.1, Parquet file       |       463 |    74 |               113 |
| with rooms (2026-11), array     |       262 |    60 |               121 |
| with rooms (2026-11), Parquet   |       412 |    90 |               177 |

Release 0.1 had forty modules in one folder, between which there is no change of folder; its walk
through today's rooms would have 151 changes of room, and today's has 150 (88 where ``_core``, which
every room calls, is left out).

Run with:  python benchmarks/walk.py [--list], with PYTHONPATH=OTHER/src for another tree.
"""

from __future__ import annotations

import argparse
import inspect
import multiprocessing
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import biglp

ROOT = Path(biglp.__file__).parent
N_ROWS, N_FEATURES, N_LABELLED = 3000, 8, 60
Step = tuple[Path, str, int]
"""File (below the folder of biglp), qualified name and first line of a function."""


def walk(run: Callable[[], None]) -> list[Step]:
    """Call ``run`` and return the functions of biglp, in the order of their first call."""
    steps: dict[Step, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # Only functions have optimised locals; modules and class bodies have not.
        if event != "call" or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        if code.co_name.startswith("<") or not code.co_filename.startswith(str(ROOT)):
            return
        file = Path(code.co_filename).relative_to(ROOT)
        steps[file, code.co_qualname, code.co_firstlineno] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(steps)


def rows_and_labels() -> tuple[np.ndarray, np.ndarray]:
    """Three clear groups, and labels of the first rows (-1 elsewhere)."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, N_ROWS)
    rows = rng.normal(size=(N_ROWS, N_FEATURES)) + 3 * truth[:, None]
    return rows.astype(np.float32), np.where(np.arange(N_ROWS) < N_LABELLED, truth, -1)


def array_walk() -> list[Step]:
    """Fit the estimator on an array."""
    model = biglp.LowRankLabelPropagation(engine="threads")
    rows, labels = rows_and_labels()
    return walk(lambda: model.fit(rows, labels))


def parquet_walk() -> list[Step]:
    """Run ``biglp fit`` on a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from biglp.cli import main as command_line

    rows, labels = rows_and_labels()
    columns: dict[str, Any] = {f"f{i}": rows[:, i] for i in range(N_FEATURES)}
    columns["y"] = pa.array([None if label < 0 else str(label) for label in labels])
    with tempfile.TemporaryDirectory(prefix="biglp-walk-") as folder:
        file = f"{folder}/rows.parquet"
        pq.write_table(pa.table(columns), file)
        options = ["--label-column", "y", "-o", f"{folder}/out", "--quiet"]
        sys.argv = ["biglp", "fit", file, *options]

        def run() -> None:
            with suppress(SystemExit):
                command_line()

        return walk(run)


def room(step: Step) -> str:
    """The first folder below biglp, or the module's name where there is none."""
    return step[0].parts[0].removesuffix(".py")


def show(title: str, steps: list[Step], listed: bool) -> None:
    """Print what a walk has, and its functions by room."""
    folders = [step[0].parent for step in steps]
    changes = sum(before != after for before, after in pairwise(folders))
    files = {step[0] for step in steps}
    print(f"{title}: {len(steps)} functions, {len(files)} files, {changes} changes of folder")
    in_files = Counter(room((file, "", 0)) for file in files)
    for name, count in Counter(map(room, steps)).most_common():
        print(f"  {name:<16}{count:4d} functions{in_files[name]:4d} files")
    for file, name, _ in steps if listed else ():
        print(f"    {file}  {name}")


def main() -> None:
    """Trace both runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the functions in their order")
    options = parser.parse_args()
    for title, trace in (("array", array_walk), ("Parquet file", parquet_walk)):
        # In a process of its own: what one run keeps in memory, the next would not call.
        with multiprocessing.get_context("spawn").Pool(1) as process:
            show(title, process.apply(trace), options.list)


if __name__ == "__main__":
    main()
