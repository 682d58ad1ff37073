"""Real launchers for tests: mpiexec from wheels, and Dask schedulers and workers as processes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
MPIEXEC, DASK, BIGLP = BIN / "mpiexec", BIN / "dask", BIN / "biglp"
TESTS = Path(__file__).parent
QUIET = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"}
PATHS = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
"""Where workers find the tests' own functions, and the sources that are tested."""


def run_ranks(n_ranks, *command, timeout=120, **environment):
    return subprocess.run(
        [MPIEXEC, "-n", str(n_ranks), sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
        check=False,
    )


class DaskProcesses:
    def __init__(self, folder, n_workers=1, prefixes=None, hosts=None):
        self.file = folder / "scheduler.json"
        self.processes = []
        prefixes = prefixes or [()] * (n_workers + 1)
        hosts = hosts or ["127.0.0.1"] * (n_workers + 1)
        self._start(prefixes[0], hosts[0], "scheduler", "--port", "0")
        # The file may be there before what is in it.
        self.address = eventually(lambda: json.loads(self.file.read_text()))["address"]
        self.workers = [
            self.add_worker(prefix, host)
            for prefix, host in zip(prefixes[1:], hosts[1:], strict=True)
        ]

    def add_worker(self, prefix=(), host="127.0.0.1", **options):
        worker = ("worker", self.address, "--nthreads", "1", "--no-nanny")
        return self._start(prefix, host, *worker, **options)

    def _start(self, prefix, host, kind, *command, cwd="/"):
        listening = ["--host", host, "--dashboard-address", "127.0.0.1:0"]
        if kind == "scheduler":
            listening += ["--scheduler-file", str(self.file)]
        process = subprocess.Popen(
            [*prefix, str(DASK), kind, *command, *listening],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**QUIET, "PYTHONPATH": os.pathsep.join(PATHS)},
            cwd=cwd,
        )
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def eventually(attempt, seconds=90):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except (ArithmeticError, OSError, ValueError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
