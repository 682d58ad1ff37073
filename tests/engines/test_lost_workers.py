"""A whole fit while Dask workers are killed at random moments: the same labels as without."""

import os
import random
import threading
import time

import numpy as np
import pytest

from biglp._engines import make_engine
from clusters import DaskProcesses
from helpers import model, rows_in_a_block

pytest.importorskip("distributed")

KILLS = int(os.environ.get("BIGLP_TEST_KILLS", "3"))
CASES = {
    "glnp": {"factor": "glnp", "n_landmarks": 8, "factor_params": {"max_iter": 12}},
    "kmeans-full": {"factor": "nystrom", "landmarks": "kmeans-full"},
}


class Killer(threading.Thread):
    def __init__(self, processes, seed):
        super().__init__()
        self._processes, self._choose = processes, random.Random(seed)
        self._done = threading.Event()
        self.kills = 0

    def run(self):
        while self.kills < KILLS and not self._done.wait(self._choose.uniform(0.1, 0.5)):
            workers = self._processes.workers
            workers.pop(self._choose.randrange(len(workers))).kill()
            workers.append(self._processes.add_worker())
            self.kills += 1
            self._done.wait(1.5)  # a new worker takes this long to start

    def end(self):
        self._done.set()
        self.join()


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")  # GLNP stops early
@pytest.mark.timeout(60 + 30 * KILLS)
def test_same_labels_while_workers_are_killed(tmp_path):
    rows = np.random.default_rng(0).random((60_000, 12), dtype=np.float32)
    rows[:, 0] += np.arange(60_000) % 3
    np.save(tmp_path / "rows.npy", rows)
    y = np.where(np.arange(60_000) < 90, np.arange(60_000) % 3, -1)
    truth = {name: fit(settings, "serial", tmp_path, y) for name, settings in CASES.items()}
    began, runs = time.monotonic(), 0
    with (
        DaskProcesses(tmp_path, 3) as processes,
        make_engine(processes.address) as engine,
    ):
        engine.client.wait_for_workers(3, timeout=60)
        killer = Killer(processes, seed=1)
        killer.start()
        try:
            while killer.is_alive() or runs < len(CASES):
                name = list(CASES)[runs % len(CASES)]
                assert (fit(CASES[name], engine, tmp_path, y) == truth[name]).all()
                runs += 1
        finally:
            killer.end()
    assert killer.kills == KILLS
    print(f"{KILLS} workers killed during {runs} runs in {time.monotonic() - began:.0f} s")


def fit(settings, engine, folder, y):
    with rows_in_a_block(500):
        shared = {"memory": "4GB"}  # of all workers and the client
        return model(**settings, **shared, engine=engine).fit(folder / "rows.npy", y).transduction_
