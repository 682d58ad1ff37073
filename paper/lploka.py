"""LP-LOKA, the C++/MPI program of the paper's group, as a peer where its binaries are at hand.

Its two programs (github.com/kuanglab/LP-LOKA, folder ``cpp``) read and write text:

- ``nystrom -i C.txt -n ROWS -k COLUMNS -o PREFIX`` takes similarities of all rows to k landmarks, a
  line a row, numbers separated by spaces. The first k rows are the landmarks. Rank r writes its
  part of the factor to ``PREFIX<r>.txt``, counted from 0; the last is filled up with zeros.
- ``lploka -F F.txt -f0 FOLDER -n ROWS -k COLUMNS -startIndex 0 -endIndex c -o FOLDER`` takes the
  factor and one file of labels a class, ``1.txt`` to ``c.txt``, a number a line. It *adds* the
  scores of each class to files of these names.

With ``--verbose`` both print "Parallel Run Time: SECONDS", which leaves reading and writing out.
Similarities and files are ours; what we take for files is not counted, what the programs take is.

Run as a program, this module measures both, as :mod:`paper.peer_methods` does:

    python -m paper.lploka BINARIES RANKS METHOD FOLDER
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError

NAME, OURS = "LP-LOKA", "biglp, LP-LOKA's method"
PROGRAMS = ("nystrom", "lploka")
LANDMARKS, ALPHA, MAX_ITER, TOLERANCE = 100, 0.9, 1000, 1e-6
DIGITS = "9"
RUN_TIME = re.compile(r"Parallel Run Time: ([0-9.eE+-]+)")


@dataclass(frozen=True)
class LpLoka:
    """Where its binaries are, and how many MPI ranks they get."""

    binaries: Path
    ranks: int

    def check(self) -> None:
        """Refuse a folder without the programs, and a machine without a launcher."""
        missing = [name for name in PROGRAMS if not (self.binaries / name).is_file()]
        if missing:
            raise ParameterError(
                f"lp_loka={str(self.binaries)!r} has no program {' and no '.join(missing)}; give "
                "the folder build/ in which make has put nystrom and lploka (docs/benchmarks.md "
                "says how they are built)."
            )
        launcher()

    def program(self) -> tuple[str, ...]:
        """The command to which a name and the folder of rows are added."""
        module = "paper.lploka"
        return (sys.executable, "-m", module, str(self.binaries), str(self.ranks))


def launcher() -> str:
    """Path of mpirun, or of mpiexec."""
    found = shutil.which("mpirun") or shutil.which("mpiexec")
    if found is None:
        raise ParameterError(
            "LP-LOKA (lp_loka) is started by mpirun or mpiexec, and neither is on the PATH; load "
            "the MPI that it was built with."
        )
    return found


def similarities(X: np.ndarray, k: int) -> np.ndarray:
    """Gaussian similarities of all rows to the first k, as wide as in LabelSpreading (rbf)."""
    spread = 2.0 * float(X.var(axis=0, dtype=np.float64).sum())  # mean ‖x − x'‖²
    norms = np.einsum("ij,ij->i", X, X)
    squared = norms[:, None] + norms[:k] - 2.0 * (X @ X[:k].T)
    return np.asarray(np.exp(np.maximum(squared, 0.0) * (-8.0 / spread)), dtype=np.float64)


def measure(settings: LpLoka, folder: Path) -> dict[str, Any]:
    """Run both programs on the rows in a folder; seconds of each stage."""
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))  # landmarks are drawn at random and come first
    k = min(LANDMARKS, len(X) // settings.ranks)
    with tempfile.TemporaryDirectory(prefix="biglp-lploka-", dir=folder) as place:
        work = Path(place)
        began = time.perf_counter()
        columns = similarities(X[order], k)
        stages = {"similarities": time.perf_counter() - began}
        np.savetxt(work / "C.txt", columns, fmt=f"%.{DIGITS}g")
        shape = ["-n", str(len(X)), "-k", str(k), "-p", DIGITS, "--verbose"]
        factor = ["-i", str(work / "C.txt"), "-o", str(work / "factor_")]
        stages |= _run("nystrom", settings, [*factor, *shape])
        _join([work / f"factor_{rank}.txt" for rank in range(settings.ranks)], work / "F.txt")
        classes = np.unique(y[y >= 0])
        stages |= _propagate(settings, work, (y[order], classes), shape)
        scores = np.column_stack(
            [np.loadtxt(work / "found" / f"{j + 1}.txt") for j in range(len(classes))]
        )
    # Scores that are all of one sign are told apart by class mass, as biglp does.
    scores = np.nan_to_num(scores[: len(X)] / np.nanmean(scores, axis=0), nan=-np.inf)
    answer = np.empty(len(X), dtype=y.dtype)
    answer[order] = classes[scores.argmax(axis=1)]
    np.save(folder / "answer.npy", answer)
    counted = ("similarities", "nystrom", "lploka")
    seconds = sum(stages[name] for name in counted)
    return {"seconds": seconds, "cpu": seconds, "stages": stages}


def _propagate(
    settings: LpLoka, work: Path, labels: tuple[np.ndarray, np.ndarray], shape: Sequence[str]
) -> dict[str, float]:
    """Write a file of labels for each class, and propagate them one after the other."""
    y, classes = labels
    (work / "f0").mkdir()
    (work / "found").mkdir()
    for j, code in enumerate(classes):
        np.savetxt(work / "f0" / f"{j + 1}.txt", y == code, fmt="%d")
    options = ["-F", str(work / "F.txt"), "-f0", str(work / "f0"), "-o", str(work / "found")]
    options += ["-startIndex", "0", "-endIndex", str(len(classes)), "-alpha", str(ALPHA)]
    options += ["-maxIter", str(MAX_ITER), "-tol", str(TOLERANCE), "-saveRows", str(len(y))]
    return _run("lploka", settings, [*options, *shape])


def _run(name: str, settings: LpLoka, options: Sequence[str]) -> dict[str, float]:
    """Seconds of a program, and what it says itself of its computation."""
    command = [launcher(), "-np", str(settings.ranks), str(settings.binaries / name), *options]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"{name} ended with {done.returncode}: {' '.join(last)}")
    said = [float(number) for number in RUN_TIME.findall(done.stdout)]
    return {name: seconds, f"{name}, computation": sum(said)}


def _join(parts: Sequence[Path], whole: Path) -> None:
    """Put the parts of all ranks into one file."""
    with whole.open("wb") as file:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, file)


def measure_ours(settings: LpLoka, folder: Path) -> dict[str, Any]:
    """Run biglp with the same method, α and number of landmarks, in as many threads as ranks."""
    from biglp import LowRankLabelPropagation
    from biglp._engines import ThreadEngine

    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    model = LowRankLabelPropagation(
        factor="nystrom",
        landmarks="random",
        n_landmarks=min(LANDMARKS, len(X) // settings.ranks),
        alpha=ALPHA,
        engine=ThreadEngine(settings.ranks),
        random_state=0,
    )
    few = np.concatenate([np.flatnonzero(y >= 0)[:300], np.flatnonzero(y < 0)[:300]])
    model.fit(X[few], y[few])
    cpu, began = time.process_time(), time.perf_counter()
    answer = model.fit(X, y).transduction_
    found = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    np.save(folder / "answer.npy", answer)
    return found


METHODS = {NAME: measure, OURS: measure_ours}

if __name__ == "__main__":
    binaries, ranks, method, folder = sys.argv[1:]
    measured = METHODS[method](LpLoka(Path(binaries), int(ranks)), Path(folder))
    sys.stdout.write(json.dumps(measured) + "\n")
