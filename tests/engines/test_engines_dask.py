"""A Dask cluster of real processes: lost workers, lost files and a scheduler that is not there."""

import gc
import random
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from biglp._core import BadRowsError, EngineError, cut_rows
from biglp._engines import SerialEngine, make_engine
from biglp._graph import Lloyd
from biglp._rows import as_source

pytest.importorskip("distributed")

import cloudpickle
from distributed import Client

from biglp._engines import worker as remote
from biglp._engines.dask import DaskEngine
from clusters import DaskProcesses, eventually

# Workers started by hand cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


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


def iterate(block, step, pause):
    """One step of an iteration whose state stays with the block, and is rebuilt when missing."""
    time.sleep(pause)
    rows = block.rows().astype(np.float64)
    state = block.memory.get("state")
    for _ in range(1 if state is not None else step):
        state = np.cos(rows if state is None else state + rows / 3)
    rebuilt = block.memory.get("step", 0) != step - 1
    block.memory.update(state=state, step=step)
    return state.T @ rows, state.sum(), np.array(rebuilt)


def test_workers_and_client_share_a_machine(engine):
    assert engine.n_threads == 1
    assert engine.n_sharing == 3 + 1


def test_kmeans_has_the_same_bits(engine):
    rows = rows_of(900)
    blocks = cut_rows(as_source(rows), 50)
    found, expected = (
        Lloyd(each, rows[4:9], max_iter=4).run(blocks, rows[:4])[0]
        for each in (engine, SerialEngine())
    )
    assert found.tobytes() == expected.tobytes()


def test_rows_stay_in_their_file(engine, tmp_path):
    rows = rows_of(600)
    np.save(tmp_path / "rows.npy", rows)
    source = as_source(tmp_path / "rows.npy")
    assert len(remote.dumps(source)) < 1000
    view = np.load(tmp_path / "rows.npy", mmap_mode="r")[100:500:2, ::-1]
    assert len(remote.dumps(view)) < 1000
    blocks = cut_rows(as_source(view), 20)
    got = np.concatenate(engine.map_blocks(lambda block: block.rows(), blocks))
    assert np.array_equal(got, rows[100:500:2, ::-1])


def test_large_functions_and_sources_are_sent_once(engine):
    constant = np.arange(2_000_000.0)  # 16 MB, more than Dask likes in a task
    source = as_source(np.ones((1000, 500)))
    blocks = cut_rows(source, 100)
    (total,) = engine.sum_blocks(lambda block: (block.rows()[:, 0] @ constant[:100],), blocks)
    assert total == 10 * constant[:100].sum()


def test_a_file_that_workers_cannot_see(engine, tmp_path):
    np.save(tmp_path / "gone.npy", rows_of(100))
    blocks = cut_rows(as_source(tmp_path / "gone.npy"), 10)
    (tmp_path / "gone.npy").unlink()
    message = r"worker tcp://127.0.0.1:\d+ .* cannot use a file: .*gone.npy"
    with pytest.raises(BadRowsError, match=message):
        engine.sum_blocks(lambda block: (block.rows().sum(),), blocks)


def test_memories_are_forgotten_with_their_plan(engine):
    blocks = cut_rows(as_source(rows_of(100)), 10)
    token = blocks[0].plan.token
    engine.map_blocks(lambda block: block.memory.update(rows=block.rows()), blocks)
    assert _holders(engine.client, token) == 3
    del blocks
    gc.collect()
    eventually(lambda: 1 / (_holders(engine.client, token) == 0))


def test_a_client_is_borrowed_and_its_workers_forget(cluster):
    with Client(cluster.address) as client:
        blocks = cut_rows(as_source(rows_of(100)), 10)
        with make_engine(client) as engine:
            assert len(engine.map_blocks(lambda block: block.index, blocks)) == 10
            assert _holders(client, blocks[0].plan.token) == 3
        assert _holders(client, blocks[0].plan.token) == 0
        assert client.status == "running"


def test_workers_are_killed_again_and_again(cluster, engine):
    source, choose = as_source(rows_of(3000)), random.Random(0)
    blocks, serial_blocks = cut_rows(source, 100), cut_rows(source, 100)
    kills, rebuilt, step, done = 0, 0, 0, threading.Event()

    def kill_now_and_then():
        nonlocal kills
        while kills < 4 and not done.wait(choose.uniform(0.2, 0.6)):
            cluster.workers.pop(choose.randrange(3)).kill()
            cluster.workers.append(cluster.add_worker())
            kills += 1
            done.wait(1.5)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        while killer.is_alive() or step < 10:
            step += 1
            sums = engine.sum_blocks(partial(iterate, step=step, pause=0.01), blocks)
            truth = SerialEngine().sum_blocks(partial(iterate, step=step, pause=0.0), serial_blocks)
            assert [s.tobytes() for s in sums[:2]] == [s.tobytes() for s in truth[:2]]
            rebuilt += int(sums[2])
    finally:
        done.set()
        killer.join()
    assert kills == 4
    assert 0 < rebuilt < len(blocks) * step / 2  # most blocks found their memory


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr("biglp._engines.dask.CONNECT_SECONDS", 1)
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 "):
        make_engine("dask://127.0.0.1:9")


def _slowly(block, folder):
    """Say that it has begun, and take a while where nobody has said so before."""
    begun = Path(folder) / "begun"
    if not begun.exists():
        begun.touch()
        time.sleep(60)
    return block.index


def test_the_only_worker_is_lost_and_another_comes(tmp_path):
    """Dask forgets what was meant for the first."""
    blocks = cut_rows(as_source(rows_of(100)), 10)
    with DaskProcesses(tmp_path, 1) as cluster, DaskEngine(cluster.address) as engine:
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
        with DaskEngine(cluster.address) as engine:
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
