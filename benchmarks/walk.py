"""How far one must read to follow a row, and how often its file is touched on the way.

Two runs are traced: ``fit`` of the estimator on an array, and ``biglp fit`` on a Parquet file. The
functions are put in the order of their first call; class bodies, lambdas and comprehensions are not
counted. A change of folder is one between two functions that follow each other in that order.

Beside the functions it is counted how often the file of the rows is opened (by any library: Linux
tells), how often a file's stamp is taken or checked, and how often a sample of rows is read.

Run with:  python benchmarks/walk.py [--list], with PYTHONPATH=OTHER/src for another tree.
"""

from __future__ import annotations

import argparse
import ctypes
import inspect
import multiprocessing
import os
import struct
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
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
IN_OPEN = 0x20
STAMPS, SAMPLES = ("FileStamp.check", "FileStamp.of"), ("take_rows",)
"""Counted calls, by qualified names: modules may move."""


@dataclass
class Walk:
    """Functions of biglp in the order of their first call, and what else was counted."""

    steps: list[Step]
    calls: Counter[str] = field(default_factory=Counter)
    opened: int = 0

    @property
    def files(self) -> set[Path]:
        """Files of the functions."""
        return {step[0] for step in self.steps}

    @property
    def changes(self) -> int:
        """Changes of folder."""
        return sum(before[0].parent != after[0].parent for before, after in pairwise(self.steps))

    def called(self, names: tuple[str, ...]) -> int:
        """How often functions of these names were called."""
        return sum(self.calls[name] for name in names)


class Opens:
    """Counts how often a file is opened, whatever library does it.

    Linux tells two equal events that follow each other as one. The folder is watched as well, so
    that an event of the folder lies between any two of the file.
    """

    def __init__(self, path: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle = libc.inotify_init1(os.O_NONBLOCK)
        watched = [os.path.dirname(path), path]
        *_, self.number = [
            libc.inotify_add_watch(self.handle, name.encode(), IN_OPEN) for name in watched
        ]
        if self.number < 0:
            raise OSError(ctypes.get_errno(), f"cannot watch {path}")

    def count(self) -> int:
        """Openings so far; asked once."""
        opened = 0
        with suppress(BlockingIOError):
            while events := os.read(self.handle, 1 << 16):
                at = 0
                while at < len(events):
                    number, _, _, length = struct.unpack_from("iIII", events, at)
                    opened += number == self.number
                    at += 16 + length
        os.close(self.handle)
        return opened


def walk(run: Callable[[], None]) -> Walk:
    """Call ``run`` and note the functions of biglp that are called."""
    steps: dict[Step, None] = {}
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # Only functions have optimised locals; modules and class bodies have not.
        if event != "call" or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        if code.co_name.startswith("<") or not code.co_filename.startswith(str(ROOT)):
            return
        file = Path(code.co_filename).relative_to(ROOT)
        steps[file, code.co_qualname, code.co_firstlineno] = None
        calls[code.co_qualname] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Walk(list(steps), calls)


def rows_and_labels() -> tuple[np.ndarray, np.ndarray]:
    """Three clear groups, and labels of the first rows (-1 elsewhere)."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, N_ROWS)
    rows = rng.normal(size=(N_ROWS, N_FEATURES)) + 3 * truth[:, None]
    return rows.astype(np.float32), np.where(np.arange(N_ROWS) < N_LABELLED, truth, -1)


def array_walk() -> Walk:
    """Fit the estimator on an array."""
    model = biglp.LowRankLabelPropagation(engine="threads")
    rows, labels = rows_and_labels()
    return walk(lambda: model.fit(rows, labels))


def parquet_walk() -> Walk:
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

        opens = Opens(file) if sys.platform == "linux" else None
        found = walk(run)
        found.opened = 0 if opens is None else opens.count()
        return found


WALKS: dict[str, Callable[[], Walk]] = {"array fit": array_walk, "Parquet fit": parquet_walk}
LIMITS = {"array fit": (350, 55, 100), "Parquet fit": (600, 85, 160)}


def traced() -> Iterator[tuple[str, Walk]]:
    """Both walks, each in a process of its own: what one keeps in memory, the next calls not."""
    for title, trace in WALKS.items():
        with multiprocessing.get_context("spawn").Pool(1) as process:
            yield title, process.apply(trace)


def yardsticks() -> Iterator[tuple[str, int, int]]:
    """What ``house.py`` shows of the walks: what it is, its value, and the limit."""
    for title, found in traced():
        functions, files, changes = LIMITS[title]
        yield f"{title}: functions", len(found.steps), functions
        yield f"{title}: files", len(found.files), files
        yield f"{title}: changes of folder", found.changes, changes
        if found.opened:
            yield f"{title}: openings of its file", found.opened, 3
            yield f"{title}: stamps taken or checked", found.called(STAMPS), 10
        yield f"{title}: samples of rows read", found.called(SAMPLES), 2


def room(step: Step) -> str:
    """The first folder below biglp, or the module's name where there is none."""
    return step[0].parts[0].removesuffix(".py")


def show(title: str, found: Walk, listed: bool) -> None:
    """Print what a walk has, and its functions by room."""
    steps, files = found.steps, found.files
    print(f"{title}: {len(steps)} functions, {len(files)} files, {found.changes} changes of folder")
    if found.opened:
        print(f"  its file is opened {found.opened} times, {found.called(STAMPS)} stamps")
    print(f"  {found.called(SAMPLES)} samples of rows are read")
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
    for title, found in traced():
        show(title, found, options.list)


if __name__ == "__main__":
    main()
