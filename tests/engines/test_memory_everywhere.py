"""``memory`` is kept by the estimator, by MPI ranks and by Dask workers, at the smallest budget.

A run is refused for a tiny budget, and then runs with the budget that the refusal names, in the
same fresh processes. These are watched from outside: what they take together of private
memory must stay below the budget of the machine. Rows that an estimator gets as an array are the
caller's and not counted.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cli_tools import failed, watched

MB = 1 << 20
ROWS, FEATURES = 100_000, 40
PROGRAM = Path(__file__).parents[1] / "memory_program.py"
METHODS = {
    "default": {"n_landmarks": 500},
    "fine": {"n_landmarks": 2500},  # a sparse graph that is factorised
    "anchors": {"factor": "anchors", "n_landmarks": 150},
    "nystrom": {"factor": "nystrom", "landmarks": "random", "n_landmarks": 20},
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("engine", "method", "rows", "features"),
    [
        ("threads", "default", ROWS, FEATURES),
        ("threads", "fine", ROWS, FEATURES),
        ("threads", "nystrom", ROWS, FEATURES),
        ("mpi", "anchors", ROWS, FEATURES),
        ("mpi", "nystrom", 15 * ROWS, 5),  # answers of many rows are sent from rank to rank
        ("dask", "anchors", ROWS, FEATURES),
    ],
)
def test_memory_is_kept(tmp_path, engine, method, rows, features):
    launcher = []
    if engine == "mpi":
        pytest.importorskip("mpi4py")
        launcher = [Path(sys.executable).with_name("mpiexec"), "-n", 2]
    if engine == "dask":
        pytest.importorskip("distributed")
    program = (*launcher, sys.executable, PROGRAM, engine, rows, features)
    code, peak, said = watched([*program, json.dumps(METHODS[method])], tmp_path)
    assert code == 0, said
    done = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    assert done["rows"] == rows
    assert peak - done["given_bytes"] <= done["least"] * MB


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("options", "most"), [([], 230), (["--factor", "nystrom"], 150)])
def test_small_tables_are_refused_for_little(tmp_path, options, most):
    rows = np.random.default_rng(0).normal(size=(3000, 10)).round(3)
    names = [f"class {i % 3}" if i < 60 else "" for i in range(len(rows))]
    lines = [",".join([*map(str, row), name]) for row, name in zip(rows, names, strict=True)]
    data = tmp_path / "rows.csv"
    data.write_text("\n".join([",".join([*"abcdefghij", "y"]), *lines]))
    words = ["fit", data, "--label-column", "y", "-o", tmp_path / "out", "-q", "--memory"]
    least = int(re.search(r"--memory (\d+)MB", failed(4, *words, "20MB", *options))[1])
    assert least <= most
    program = [sys.executable, "-m", "biglp", *words, f"{least}MB", *options]
    code, peak, said = watched(program, tmp_path)
    assert code == 0, said
    assert peak <= least * MB
