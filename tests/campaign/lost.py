"""Processes of a cluster that are lost: MPI ranks end the job, Dask workers are replaced."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from campaign.problems import write_problem
from campaign.processes import run, same_results
from clusters import MPIEXEC, DaskProcesses

ATTACKS = 3
PROGRAM = "from biglp.cli import main; main()"


def ranks(seed: int, folder: Path) -> int:
    choose = random.Random(seed)
    command = ["fit", *write_problem(choose, folder)]
    code, said = run(folder, *command, "-o", "whole")
    assert code == 0, said
    seconds = 3.0
    for attacks in range(1, ATTACKS + 1):  # noqa: B007  returned
        began = time.monotonic()
        job = _launch(folder, choose.choice([2, 3]), command)
        ended = _attack(job, choose, choose.uniform(0, 1.2 * seconds))
        try:
            code = job.wait(90)
        except subprocess.TimeoutExpired:
            raise AssertionError("the other ranks wait for ever") from None
        if not ended:
            assert code == 0, (folder / "mpi.txt").read_text()[-2000:]
            break
        seconds = max(seconds, time.monotonic() - began)
    engine = choose.choice(["mpi", "threads"])
    if engine == "mpi":
        code = _launch(folder, 2, command).wait(200)
        said = (folder / "mpi.txt").read_text()[-2000:]
    else:
        code, said = run(folder, *command, "-o", "out", "--resume")
    assert code == 0, f"resumed: {code} {said}"
    same_results(folder / "whole", folder / "out")
    return attacks


def _launch(folder: Path, n_ranks: int, command: list[str]) -> subprocess.Popen[bytes]:
    words = [*command, "-o", "out", "--engine", "mpi", "--resume", "-q"]
    with open(folder / "mpi.txt", "wb") as output:
        return subprocess.Popen(
            [MPIEXEC, "-n", str(n_ranks), sys.executable, "-c", PROGRAM, *words],
            cwd=folder,
            stdout=output,
            stderr=output,
        )


def _attack(job: subprocess.Popen[bytes], choose: random.Random, after: float) -> bool:
    end = time.monotonic() + after
    number = choose.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
    while True:
        found = []
        with suppress(psutil.Error):
            children = psutil.Process(job.pid).children(recursive=True)
            found = [each.pid for each in children if "python" in each.name()]
        if job.poll() is not None:
            return False
        if found and time.monotonic() >= end:
            with suppress(ProcessLookupError):
                os.kill(choose.choice(sorted(found)), number)
                return True
        time.sleep(0.02)


class Killer(threading.Thread):
    def __init__(self, processes: DaskProcesses, choose: random.Random) -> None:
        super().__init__(daemon=True)
        self._processes, self._choose, self._end = processes, choose, threading.Event()
        self.kills = 0

    def run(self) -> None:
        while self.kills < ATTACKS and not self._end.wait(self._choose.uniform(0.1, 1.5)):
            workers = self._processes.workers
            workers.pop(self._choose.randrange(len(workers))).kill()
            workers.append(self._processes.add_worker())
            self.kills += 1
            self._end.wait(2.0)  # a new worker takes this long to start

    def stop(self) -> None:
        self._end.set()
        self.join()


def workers(seed: int, folder: Path) -> int:
    from biglp import LowRankLabelPropagation
    from biglp._engines import make_engine
    from helpers import rows_in_a_block

    choose = random.Random(seed)
    rng = np.random.default_rng(seed)
    n = choose.randrange(10_000, 30_000)
    rows = rng.normal(size=(n, 8)).astype(np.float32)
    rows[:, 0] += 2 * (np.arange(n) % 3)
    np.save(folder / "rows.npy", rows)
    y = np.where(np.arange(n) < 60, np.arange(n) % 3, -1)
    settings: dict[str, object] = {"memory": "4GB", "random_state": 0}
    if choose.random() < 0.3:
        settings |= {"factor": "glnp", "n_landmarks": 8, "factor_params": {"max_iter": 12}}
    else:
        settings |= {"factor": choose.choice(["anchors", "nystrom"]), "n_landmarks": 30}
        settings |= {"landmarks": choose.choice(["kmeans", "kmeans-full", "random"])}

    def fitted(engine: object) -> np.ndarray:
        with rows_in_a_block(1000):
            made = LowRankLabelPropagation(**settings, engine=engine)
            found: np.ndarray = made.fit(folder / "rows.npy", y).transduction_
            return found

    truth = fitted("serial")
    with DaskProcesses(folder, 3) as processes, make_engine(processes.address) as engine:
        engine.client.wait_for_workers(3, timeout=60)
        killer = Killer(processes, choose)
        killer.start()
        try:
            while killer.is_alive():
                assert (fitted(engine) == truth).all(), "other labels"
        finally:
            killer.stop()
    return killer.kills
