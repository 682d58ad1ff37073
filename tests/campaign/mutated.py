"""Damaged files of every format, and of every part of a model, through the command line."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import resource
import shutil
import signal
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import array_files
import cli_tools
import row_files
from campaign.mutations import mutated
from campaign.processes import ENDINGS, QUICK

FILES_EACH, MODELS_EACH = (3, 12) if QUICK else (60, 60)
SECONDS_EACH = 60
ADDRESSES = 12 << 30
TABLES = (
    "csv",
    "csv.gz",
    "tsv",
    "parquet",
    "feather",
    "arrow-lz4",
    "jsonl",
    "libsvm",
    "libsvm.bz2",
)
ARRAYS = ("npy", "npy-fortran", "npz", "npz-sparse", "hdf5", "zarr")
LABELS = ("labels.npy", "labels.csv", "pairs.csv", "labels.txt", "labels.json")


def files(seed: int, folder: Path) -> int:
    """Damage a file of one format many times, and read it each time."""
    choose = random.Random(seed)
    kinds = (*TABLES, *ARRAYS, *LABELS)
    os.chdir(folder)
    command, targets = _write(kinds[seed % len(kinds)], choose)
    contents = {path: path.read_bytes() for path in targets}

    def attempt() -> list[str]:
        target = choose.choice(targets)
        target.write_bytes(mutated(contents[target], choose))
        Path("attacked.txt").write_text(str(target))
        shutil.copy(target, "attacked.bin")
        return command

    def restore() -> None:
        for path, content in contents.items():
            path.write_bytes(content)

    return _attack(FILES_EACH, attempt, restore)


def models(seed: int, folder: Path) -> int:
    """Damage a model file, as a whole or one part of it, and predict with it each time."""
    choose = random.Random(seed)
    os.chdir(folder)
    rng = np.random.default_rng(seed)
    truth = np.arange(120) % 3
    np.save("rows.npy", rng.normal(size=(120, 4)) + 2 * truth[:, None])
    np.save("labels.npy", np.where(np.arange(120) < 40, truth, -1))
    factor = choose.choice(["anchors", "nystrom", "linear", "glnp", "auto"])
    options = ("--factor", factor, "-k", "12", "-q", "-o", "fitted")
    with _fork() as child:
        if child:
            code = cli_tools.run("fit", "rows.npy", "--labels", "labels.npy", *options).exit_code
            os._exit(code)
    whole = Path("fitted/model.biglp").read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}

    def attempt() -> list[str]:
        if choose.random() < 0.3:
            content = mutated(whole, choose)
        else:
            name = choose.choice([*parts])
            content = _packed({**parts, name: mutated(parts[name], choose)})
        Path("attacked.biglp").write_bytes(content)
        return ["predict", "attacked.biglp", "rows.npy", "-o", "new", "--overwrite", "-q"]

    return _attack(MODELS_EACH, attempt, lambda: None)


def _attack(count: int, attempt: Callable[[], list[str]], restore: Callable[[], None]) -> int:
    """Make so many attempts in one forked process; say which one ended it, if one did."""
    child = os.fork()
    if child == 0:
        code = 98
        try:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            for number in range(count):
                command = attempt()
                Path("number.txt").write_text(json.dumps([number, command]))
                signal.alarm(SECONDS_EACH)
                problem = _problem(command)
                signal.alarm(0)
                if problem:
                    Path("problem.txt").write_text(problem)
                    os._exit(97)
                restore()
                if command[0] == "fit":  # "models" keeps what it has fitted
                    shutil.rmtree("out", ignore_errors=True)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return count
    number, command = json.loads(Path("number.txt").read_text())
    told = Path("problem.txt").read_text() if code == 97 else f"the process ended with {code}"
    error = AssertionError(f"attempt {number}: {' '.join(command)}: {told}")
    error.tried = number + 1  # type: ignore[attr-defined]
    raise error


def _problem(command: list[str]) -> str | None:
    """Run a command; say in what way it ended badly."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = cli_tools.run(*command)
    if result.exit_code not in ENDINGS:
        return f"exit {result.exit_code}: {result.stderr[-3000:]} {result.exception!r}"
    if "Traceback" in result.output or "Warning:" in result.stderr:
        return f"said: {result.output[-3000:]}"
    return None


class _fork:  # noqa: N801
    """A child in the body of ``with``, which the parent waits for."""

    def __enter__(self) -> bool:
        self._pid = os.fork()
        return self._pid == 0

    def __exit__(self, *_: object) -> None:
        if self._pid == 0:
            os._exit(96)
        _, status = os.waitpid(self._pid, 0)
        assert status == 0, f"the undamaged command ended with status {status}"


def _packed(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _write(kind: str, choose: random.Random) -> tuple[list[str], list[Path]]:
    """Write an undamaged file; return the command that reads it, and the files to damage."""
    rng = np.random.default_rng(choose.getrandbits(32))
    n = choose.randrange(60, 300)
    truth = rng.integers(0, 3, n)
    values = np.round(rng.normal(size=(n, 4)) + 2 * truth[:, None], 3)
    shown = np.where(np.arange(n) < 30, truth, -1)
    np.save("labels.npy", shown)
    options = ["--factor", "linear", "-q", "-o", "out", "--overwrite"]
    if kind in ARRAYS or kind in LABELS:
        named, targets = _write_arrays(kind, values, rng)
        labels = ["--labels", _write_labels(kind, shown)] if kind in LABELS else []
        if labels:
            targets = [Path(labels[1])]
        return ["fit", *named, *(labels or ["--labels", "labels.npy"]), *options], targets
    named = [*map(str, _write_table(kind, values, shown))]
    if kind.startswith("libsvm"):
        named += ["--labels", "labels.npy"]
    return ["fit", *named, *options], [Path(named[0])]


def _write_table(kind: str, values: np.ndarray, shown: np.ndarray) -> tuple[str, ...]:
    import bz2

    import pyarrow.feather

    if kind == "libsvm.bz2":
        row_files.write("libsvm", values, shown)
        Path("rows.libsvm.bz2").write_bytes(bz2.compress(Path("rows.libsvm").read_bytes()))
        return ("rows.libsvm.bz2",)
    if kind in ("libsvm", "parquet", "csv"):
        return row_files.write(kind, values, shown)
    row_files.write("csv", values, shown)
    text = Path("rows.csv").read_bytes()
    if kind == "csv.gz":
        Path("rows.csv.gz").write_bytes(gzip.compress(text))
        return "rows.csv.gz", "--label-column", "y"
    if kind == "tsv":
        Path("rows.tsv").write_bytes(text.replace(b",", b"\t"))
        return "rows.tsv", "--label-column", "y"
    table = pyarrow.csv.read_csv("rows.csv")
    if kind == "jsonl":
        lines = [json.dumps(row) for row in table.to_pylist()]
        Path("rows.jsonl").write_text("\n".join(lines) + "\n")
        return "rows.jsonl", "--label-column", "y"
    packing = "lz4" if kind == "arrow-lz4" else "uncompressed"
    pyarrow.feather.write_feather(table, "rows.feather", compression=packing)
    return "rows.feather", "--label-column", "y"


def _write_arrays(
    kind: str, values: np.ndarray, rng: np.random.Generator
) -> tuple[list[str], list[Path]]:
    from scipy import sparse

    if kind == "npy-fortran":
        np.save("rows.npy", np.asfortranarray(values))
        return ["rows.npy"], [Path("rows.npy")]
    if kind == "npz-sparse":
        thin = np.where(rng.random(values.shape) < 0.5, 0, values)
        sparse.save_npz("rows.npz", sparse.csr_matrix(thin))
        return ["rows.npz"], [Path("rows.npz")]
    if kind in LABELS or kind == "npy":
        np.save("rows.npy", values)
        return ["rows.npy"], [Path("rows.npy")]
    named = array_files.write(kind, values, Path("made"), [], 50)
    place = Path(named.partition("::")[0])
    return [named], [path for path in sorted(place.parent.rglob("*")) if path.is_file()]


def _write_labels(kind: str, shown: np.ndarray) -> str:
    known = np.flatnonzero(shown >= 0)
    if kind == "labels.csv":
        Path(kind).write_text("label\n" + "\n".join(map(str, shown)) + "\n")
    elif kind == "pairs.csv":
        Path(kind).write_text("row,label\n" + "".join(f"{i},{shown[i]}\n" for i in known))
    elif kind == "labels.txt":
        Path(kind).write_text("".join(f"{label}\n" for label in shown))
    elif kind == "labels.json":
        tasks = [
            {
                "data": {"row": int(i)},
                "annotations": [{"result": [{"value": {"choices": [str(shown[i])]}}]}],
            }
            for i in known
        ]
        Path(kind).write_text(json.dumps(tasks))
    return kind
