"""One test body, every engine.

``engine`` gives the same test an engine of each kind. Under ``mpiexec`` (see test_engines_mpi.py)
BIGLP_TEST_ENGINE=mpi leaves only the MPI engine, with all ranks of the job.
"""

import os
import sys
from pathlib import Path

import pytest

from biglp._engines import ENGINES, SerialEngine, ThreadEngine
from store_server import store, store_server

__all__ = ["engine", "store", "store_server"]

ALL = ("serial", "threads-1", "threads-2", "threads-5", "mpi", "dask-1", "dask-3")
CHOSEN = tuple(filter(None, [os.environ.get("BIGLP_TEST_ENGINE")])) or ALL

ELSEWHERE = {
    "campaign": "forks, and limits memory",
    "doors/test_errors.py": "forks",
    "doors/test_outputs.py": "limits the size of files, and kills by signals",
    "doors/test_pages_answers.py": "reads /proc",
    "doors/test_pages_browser.py": "kills by signals",
    "doors/test_pages_server.py": "kills by signals",
    "doors/test_resume.py": "kills by signals",
    "paper/test_peers.py": "reads /proc",
}
"""Tests, below this folder, that ask for what only Linux has, and what that is."""


def pytest_collection_modifyitems(items):
    if sys.platform == "linux":
        return
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix()
        for name, reason in ELSEWHERE.items():
            if place == name or place.startswith(f"{name}/"):
                item.add_marker(pytest.mark.skip(reason=reason))


TABLES = {
    "biglp._engines": "ENGINES",
    "biglp._graph": "FACTORS",
    "biglp._learn": "METHODS",
    "biglp._learn.committee": "MEMBERS",
    "biglp._transforms.base": "TRANSFORMS",
    "biglp._tables.kinds": "KINDS",
}


@pytest.fixture(autouse=True)
def tables_in_their_order():
    """A test leaves all tables of names as they were, in the same order.

    Members of a committee are added in theirs: put back in another one, they gave later tests of
    this process other last digits than its Dask workers and MPI ranks, which start anew.
    """

    def orders():
        return {
            name: list(getattr(sys.modules[module], name))
            for module, name in TABLES.items()
            if module in sys.modules
        }

    before = orders()
    yield
    after = orders()
    assert {name: after[name] for name in before} == before


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def engines():
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
    kind, _, count = name.partition("-")
    if kind == "serial":
        return SerialEngine()
    if kind == "threads":
        return ThreadEngine(int(count))
    pytest.importorskip("mpi4py" if kind == "mpi" else "distributed")
    if kind == "mpi":
        return ENGINES["mpi"](n_threads=2)
    return ENGINES["dask"](n_workers=int(count), n_threads=2 if count == "1" else 1)
