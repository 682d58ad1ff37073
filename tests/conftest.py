"""One test body, every engine.

``engine`` gives the same test an engine of each kind. Under ``mpiexec`` (see test_engines_mpi.py)
BIGLP_TEST_ENGINE=mpi leaves only the MPI engine, with all ranks of the job.
"""

import os
import sys
from pathlib import Path

import pytest

from biglp._engines import SerialEngine, ThreadEngine
from store_server import store, store_server

__all__ = ["engine", "store", "store_server"]

ALL = ("serial", "threads-1", "threads-2", "threads-5", "mpi", "dask-1", "dask-3")
CHOSEN = tuple(filter(None, [os.environ.get("BIGLP_TEST_ENGINE")])) or ALL

ELSEWHERE = {
    "campaign": "forks, and limits memory",
    "doors/test_errors.py": "forks",
    "paper/test_peers.py": "reads /proc",
    "doors/test_resume.py": "kills by signals",
    "pages/browser": "kills by signals",
    "pages/label/test_answers.py": "reads /proc",
    "pages/label/test_serve.py": "kills by signals",
    "sinks/test_base.py": "limits the size of files, and kills by signals",
}
"""Tests, below this folder, that ask for what only Linux has, and what that is."""


def pytest_collection_modifyitems(items):
    """Skip on other systems what cannot be asked there."""
    if sys.platform == "linux":
        return
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix()
        for name, reason in ELSEWHERE.items():
            if place == name or place.startswith(f"{name}/"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def engines():
    """Engines by their names, made when they are first asked for."""
    made = {}
    yield made
    while made:
        made.popitem()[1].close()


@pytest.fixture(scope="session", params=CHOSEN)
def engine(request, engines):
    """An engine of each kind; a session's tests share it.

    pytest ends a fixture when its parameter changes, and so with every file: clusters would be
    started anew each time.
    """
    if request.param not in engines:
        engines[request.param] = make_engine(request.param)
    return engines[request.param]


def make_engine(name):
    """Make an engine of a kind."""
    kind, _, count = name.partition("-")
    if kind == "serial":
        return SerialEngine()
    if kind == "threads":
        return ThreadEngine(int(count))
    if kind == "mpi":
        pytest.importorskip("mpi4py")
        from biglp._engines.mpi import MpiEngine

        return MpiEngine(n_threads=2)
    pytest.importorskip("distributed")
    from biglp._engines.dask import DaskEngine

    return DaskEngine(n_workers=int(count), n_threads=2 if count == "1" else 1)
