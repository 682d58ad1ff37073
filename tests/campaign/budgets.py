"""Memory budgets: at the smallest one that biglp names, a run ends well and stays below it."""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from cli_tools import watched
from clusters import MPIEXEC

MB = 1 << 20
MAIN = "from biglp.cli import main; main()"
PROGRAM = Path(__file__).parents[1] / "memory_program.py"
SHAPES = ("npy", "parquet", "csv", "sparse", "pairs", "texts", "group", "classes")
SHAPES += ("estimator", "mpi")
TABLES = ("parquet", "csv", "texts", "group")
METHODS = (
    ("--factor", "anchors"),
    ("--factor", "nystrom", "--landmarks", "random"),
    ("--factor", "linear"),
    (),
)


def kept(seed: int, folder: Path) -> int:
    choose = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    if shape in ("estimator", "mpi"):  # a program that asks for itself, and runs with the answer
        code, peak, said = watched(_program(shape, choose), folder)
        assert code == 0, said[-1500:]
        found = json.loads(said.strip().splitlines()[-1])
        budget, peak = found["least"], peak - found["given_bytes"]
    else:
        budget, peak = _from_files(shape, choose, folder)
    assert peak <= budget * MB, f"{shape}: {peak / MB:.0f} MB taken of {budget} MB"
    return 1


def _from_files(shape: str, choose: random.Random, folder: Path) -> tuple[int, int]:
    words = _files(shape, choose, folder)
    # The linear factor of thousands of columns is thousands wide, and takes hours.
    method = choose.choice([one for one in METHODS if shape != "sparse" or "linear" not in one])
    landmarks = [] if "linear" in method else ["-k", str(choose.choice([20, 100, 400]))]
    threads = str(choose.choice([1, 2]))
    words += [*method, *landmarks, "-o", "out", "--overwrite", "-q", "--threads", threads]
    command = [sys.executable, "-c", MAIN, "fit", *words, "--memory"]
    _, _, said = watched([*command, "20MB"], folder)
    least = re.search(r"--memory (\d+)MB", said)
    assert least is not None, f"no smallest budget was named: {said[-1500:]}"
    budget = int(least[1])
    code, peak, said = watched([*command, f"{budget}MB"], folder)
    more = re.search(r"--memory (\d+)MB", said)
    if code == 4 and more and shape in TABLES:  # what labels take is known once they are read
        budget = int(more[1])
        code, peak, said = watched([*command, f"{budget}MB"], folder)
    assert code == 0, f"with the {budget} MB that it named: {said[-1500:]}"
    return budget, peak


def _program(shape: str, choose: random.Random) -> list[str]:
    rows, features = choose.randrange(20_000, 200_000), choose.choice([5, 40, 120])
    k = choose.choice([50, 300])
    anchors = {"factor": "anchors", "n_landmarks": k}
    nystrom = {"factor": "nystrom", "landmarks": "random", "n_landmarks": 40}
    method = choose.choice([{"n_landmarks": k}, anchors, nystrom])
    engine = "threads" if shape == "estimator" else "mpi"
    launcher = [str(MPIEXEC), "-n", "2"] if engine == "mpi" else []
    words = [engine, str(rows), str(features), json.dumps(method)]
    return [*launcher, sys.executable, str(PROGRAM), *words]


def _files(shape: str, choose: random.Random, folder: Path) -> list[str]:
    rng = np.random.default_rng(choose.getrandbits(32))
    if shape == "sparse":
        rows, width = choose.randrange(5000, 60_000), choose.choice([2000, 20_000, 100_000])
        density = choose.choice([20, 80]) / width
        X = sparse.random(rows, width, density, "csr", dtype=np.float32, random_state=rng)
        sparse.save_npz(folder / "rows.npz", X, compressed=False)
        return ["rows.npz", *_labels(rng, folder, rows, 3, 60)]
    rows, features = choose.randrange(50_000, 300_000), choose.choice([5, 20, 60])
    classes = choose.choice([100, 400]) if shape == "classes" else choose.choice([2, 10])
    X = rng.standard_normal((rows, features), dtype=np.float32)
    if shape in ("npy", "classes"):
        np.save(folder / "rows.npy", X)
        return ["rows.npy", *_labels(rng, folder, rows, classes, 20 * classes)]
    if shape == "pairs":
        np.save(folder / "rows.npy", X)
        codes = rng.integers(0, classes, rows)
        pairs = pa.table({"row": np.arange(rows), "label": codes})
        pq.write_table(pairs, folder / "pairs.parquet")
        return ["rows.npy", "--labels", "pairs.parquet"]
    codes = rng.integers(0, classes, rows)
    shown = np.arange(rows) < (rows if shape == "texts" else 50 * classes)
    names = np.array([f"a class of the number {code}" for code in range(classes)])
    y = pa.array(names[codes] if shape == "texts" else codes, mask=~shown)
    table = pa.table({**{f"x{i}": X[:, i] for i in range(features)}, "y": y})
    if shape == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table.slice(0, 60_000), folder / "rows.csv")
        return ["rows.csv", "--label-column", "y"]
    each = rows if shape == "group" else 50_000
    pq.write_table(table, folder / "rows.parquet", row_group_size=each, use_dictionary=False)
    return ["rows.parquet", "--label-column", "y"]


def _labels(rng: Any, folder: Path, rows: int, classes: int, labelled: int) -> list[str]:
    y = np.full(rows, -1)
    chosen = rng.choice(rows, min(labelled, rows // 2), replace=False)
    y[chosen] = np.arange(len(chosen)) % classes
    np.save(folder / "labels.npy", y)
    return ["--labels", "labels.npy"]
