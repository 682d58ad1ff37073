"""A Dask cluster of real processes: lost workers, lost files and a scheduler that is not there."""

import gc
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from biglp._core import BadRowsError, EngineError, cut_rows
from biglp._engines import make_engine
from biglp._engines import worker as remote
from biglp._rows import as_source
from clusters import DaskProcesses, eventually

Client = pytest.importorskip("distributed").Client
# Workers started by hand cannot import this file.
pytest.importorskip("cloudpickle").register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with DaskProcesses(tmp_path_factory.mktemp("dask"), 3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def engine(cluster):
    with make_engine(cluster.address.replace("tcp://", "dask://")) as engine:
        engine.client.wait_for_workers(3, timeout=60)
        yield engine


def rows_of(n_rows, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, 3)).astype(np.float32)


def test_they_share_a_machine_and_rows_stay_in_their_file(engine, tmp_path):
    assert (engine.n_threads, engine.n_sharing) == (1, 3 + 1)
    rows = rows_of(600)
    np.save(tmp_path / "rows.npy", rows)
    view = np.load(tmp_path / "rows.npy", mmap_mode="r")[100:500:2, ::-1]
    for given in (tmp_path / "rows.npy", view):
        assert len(remote.dumps(as_source(given))) < 1000
    got = engine.map_blocks(lambda block: block.rows(), cut_rows(as_source(view), 20))
    assert np.array_equal(np.concatenate(got), rows[100:500:2, ::-1])


def test_a_file_that_workers_cannot_see(engine, tmp_path):
    np.save(tmp_path / "gone.npy", rows_of(100))
    blocks = cut_rows(as_source(tmp_path / "gone.npy"), 10)
    (tmp_path / "gone.npy").unlink()
    message = r"worker tcp://127.0.0.1:\d+ .* cannot use a file: .*gone.npy"
    with pytest.raises(BadRowsError, match=message):
        engine.sum_blocks(lambda block: (block.rows().sum(),), blocks)


def test_memories_are_forgotten_with_their_plan_and_a_client_is_borrowed(cluster, engine):
    blocks = cut_rows(as_source(rows_of(100)), 10)
    token = blocks[0].plan.token
    engine.map_blocks(lambda block: block.memory.update(rows=block.rows()), blocks)
    assert _holders(engine.client, token) == 3
    del blocks
    gc.collect()
    eventually(lambda: 1 / (_holders(engine.client, token) == 0))
    with Client(cluster.address) as client:
        blocks = cut_rows(as_source(rows_of(100)), 10)
        with make_engine(client) as other:
            assert len(other.map_blocks(lambda block: block.index, blocks)) == 10
            assert _holders(client, blocks[0].plan.token) == 3
        assert _holders(client, blocks[0].plan.token) == 0
        assert client.status == "running"


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr("biglp._engines.dask.CONNECT_SECONDS", 1)
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 "):
        make_engine("dask://127.0.0.1:9")


def _slowly(block, folder):
    begun = Path(folder) / "begun"
    if not begun.exists():
        begun.touch()
        time.sleep(60)
    return block.index


def test_the_only_worker_is_lost_and_another_comes(tmp_path):
    """Dask forgets what was meant for the first."""
    blocks = cut_rows(as_source(rows_of(100)), 10)
    with DaskProcesses(tmp_path, 1) as cluster, make_engine(cluster.address) as engine:
        engine.client.wait_for_workers(1, timeout=60)

        def replace():
            eventually(lambda: 1 / (tmp_path / "begun").exists())
            cluster.workers[0].kill()
            cluster.workers[0].wait()
            eventually(lambda: 1 / (not engine.client.nthreads()))
            cluster.add_worker()

        replacing = threading.Thread(target=replace)
        replacing.start()
        found = engine.map_blocks(partial(_slowly, folder=str(tmp_path)), blocks)
        replacing.join()
    assert found == [block.index for block in blocks]


def test_no_workers_and_then_no_scheduler(tmp_path, monkeypatch):
    monkeypatch.setattr("biglp._engines.dask.CONNECT_SECONDS", 120)
    monkeypatch.setattr("biglp._engines.dask.WORKER_SECONDS", 0.5)
    cluster = DaskProcesses(tmp_path, 0)
    blocks = cut_rows(as_source(rows_of(100)), 10)
    try:
        with make_engine(cluster.address) as engine:
            with pytest.raises(EngineError, match="has had no worker for"):
                engine.map_blocks(lambda block: block.index, blocks)
            cluster.close()
            eventually(lambda: 1 / (engine.client.status != "running"))
            with pytest.raises(EngineError, match=r"connection to the Dask scheduler .* was lost"):
                engine.map_blocks(lambda block: block.index, blocks)
    finally:
        cluster.close()


def _holders(client, token):
    return sum(client.run(lambda: token in remote._stores).values())
