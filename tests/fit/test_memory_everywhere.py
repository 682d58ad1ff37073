"""``memory`` is kept by the estimator, by MPI ranks and by Dask workers, at the smallest budget.

A run starts in a fresh process, is first refused for a tiny budget, and then runs with the budget
that the refusal names. Its processes are watched from outside: what they take together of private
memory must stay below the budget of the machine. Rows that an estimator gets as an array are the
caller's and not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from biglp._core.memory import private_memory

MB = 1 << 20
ROWS, FEATURES = 100_000, 40
PROGRAM = Path(__file__).parents[1] / "memory_program.py"
METHODS = {
    "default": {"n_landmarks": 500},
    "anchors": {"factor": "anchors", "n_landmarks": 150},
    "nystrom": {"factor": "nystrom", "landmarks": "random", "n_landmarks": 20},
}


def watched(*command: object) -> tuple[dict, int]:
    """Run a command; return what it printed, and the most its Python processes took together."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    parent, peak = psutil.Process(process.pid), 0
    pythons, looked = [process.pid], 0.0
    while process.poll() is None:
        if time.monotonic() - looked > 0.1:  # looking for children takes longer than all the rest
            with suppress(psutil.Error):
                family = [parent, *parent.children(recursive=True)]
                pythons = [one.pid for one in family if "python" in one.name()]
            looked = time.monotonic()
        peak = max(peak, sum(private_memory(pid) for pid in pythons))
        time.sleep(0.01)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return json.loads(output.splitlines()[-1]), peak


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("engine", "method"),
    [
        ("threads", "default"),
        ("threads", "nystrom"),
        ("mpi", "anchors"),
        ("mpi", "nystrom"),
        ("dask", "anchors"),
        ("dask", "nystrom"),
    ],
)
def test_memory_is_kept(engine, method):
    launcher = []
    if engine == "mpi":
        pytest.importorskip("mpi4py")
        launcher = [Path(sys.executable).with_name("mpiexec"), "-n", 2]
    if engine == "dask":
        pytest.importorskip("distributed")
    program = (*launcher, sys.executable, PROGRAM, engine, ROWS, FEATURES)
    parameters = json.dumps(METHODS[method])
    refused, _ = watched(*program, parameters, "20MB")
    least = refused["least"]
    done, peak = watched(*program, parameters, f"{least}MB")
    assert done["rows"] == ROWS
    assert peak - done["given_bytes"] <= least * MB
