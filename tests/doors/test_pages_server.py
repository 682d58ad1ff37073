"""The server as a process: killed at any moment, ended by Ctrl-C, refused where it must be."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import uuid

import httpx
import numpy as np
import pytest

from biglp._labelling import LabelsFile
from biglp.cli.label import default_labels
from cli_tools import Process, failed
from label_tools import made_rows, wait_for

STARTED = []


@pytest.fixture(autouse=True)
def no_server_is_left():
    yield
    for server in STARTED:
        if server.process.wait(0) is None:
            server.end(signal.SIGKILL)
    STARTED.clear()


class Server:
    """``biglp label`` in a process of its own, always at the same address."""

    def __init__(self, folder, port):
        options = ["--no-browser", "--port", port, "--memory", "600MB", "--labels", "answers.csv"]
        self.process = Process(folder, "label", "rows.npy", *options)
        STARTED.append(self)
        base = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(
            base_url=base, headers={"origin": base, "x-biglp": "1"}, timeout=60
        )
        wait_for(self._answers)
        token = (folder / ".answers.csv.token").read_text().strip()
        assert self.client.get(f"/?token={token}").status_code == 303

    def _answers(self):
        assert self.process.wait(0) is None, self.process.stderr
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/").status_code == 403
        return False

    def end(self, number):
        code = self.process.signal(number)
        self.client.close()
        return code


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "rows.npy", made_rows(300)[0])
    return tmp_path


def test_killed_at_random_moments(folder):
    """Each time answers are sent as fast as they go; benchmarks/label.py has more."""
    rng, confirmed, sent, row = random.Random(0), {}, {}, 0
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for _ in range(2):
        server = Server(folder, port)
        state = server.client.get("/api/state").json()
        assert state["labelled"] in (len(confirmed), len(confirmed) + 1)
        # What had no answer is sent again, as the page does.
        for again in sent.values():
            assert server.client.post("/api/answer", json=again).json()["saved"]
            confirmed[again["row"]] = again["label"]
        sent.clear()
        killed, pid = len(confirmed) + rng.randint(6, 12), server.process.pid
        while True:
            if len(confirmed) == killed:  # while the next ones are on their way
                threading.Timer(rng.uniform(0, 0.05), os.kill, (pid, signal.SIGKILL)).start()
            what = {"row": row, "label": f"c{row % 3}", "answer": str(uuid.uuid4())}
            row += 1
            sent[what["answer"]] = what
            try:
                assert server.client.post("/api/answer", json=what).json()["saved"]
            except httpx.TransportError:
                if len(confirmed) >= killed:
                    break
                # The server has closed a connection that a busy machine left unused.
                assert server.client.post("/api/answer", json=what).json()["saved"]
            confirmed[what["row"]] = sent.pop(what["answer"])["label"]
        assert server.process.wait() == -signal.SIGKILL
        server.client.close()
    lines = LabelsFile(folder / "answers.csv", "row", lambda rows: []).read()
    found = [int(key) for key, _ in lines]
    assert len(found) == len(set(found))
    assert len(confirmed) > 10
    assert {int(key): label for key, label in lines}.items() >= confirmed.items()
    server = Server(folder, port)
    for again in sent.values():
        server.client.post("/api/answer", json=again)
        confirmed[again["row"]] = again["label"]
    lines = LabelsFile(folder / "answers.csv", "row", lambda rows: []).read()
    assert {int(key): label for key, label in lines} == confirmed
    assert len(lines) == len(confirmed)
    # Another server of the same file is refused; this one goes on until Ctrl-C ends it.
    message = failed(2, "label", folder / "rows.npy", "--labels", folder / "answers.csv")
    assert "in use" in message
    assert server.client.get("/api/state").status_code == 200
    with server.client.stream("GET", "/api/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("data: ")
        os.kill(server.process.pid, signal.SIGINT)
        assert [line for line in lines if line.startswith("event")] == []  # it ends
    assert server.process.wait(60) == 0
    assert server.process.stderr == ""
    server.client.close()


def test_a_port_that_is_taken(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = failed(
            2, "label", folder / "rows.npy", "--port", port, "--labels", folder / "a.csv"
        )
    assert f"--port {port}" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "--i-know"),
        (["--shape", "9x9"], "--shape '9x9'"),
        (["--show", "a"], "--show 'a'"),
        (["--classes", "a,NA"], "'NA'"),
    ],
)
def test_options_that_are_refused(folder, options, message):
    rows, labels = folder / "rows.npy", folder / "a.csv"
    assert message in failed(
        3 if "--classes" in options else 2, "label", rows, "--labels", labels, *options
    )


@pytest.mark.parametrize("package", ["uvicorn", "starlette"])
def test_without_the_extra(folder, package):
    arguments = ["biglp", "label", "rows.npy", "--labels", "a.csv"]
    code = f"import runpy, sys; sys.modules[{package!r}] = None; sys.argv = {arguments!r}"
    code += "; runpy.run_module('biglp', run_name='__main__')"
    made = subprocess.run(  # a fresh Python: in this one the server is loaded
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 6
    assert 'pip install "biglp[label]"' in made.stderr
    assert "Traceback" not in made.stderr
    assert not (folder / "a.csv").exists()


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ("data/mnist.npy", "mnist.labels.csv"),
        ("s3://bucket/part-*.parquet", "part.labels.csv"),
        ("x.h5::images", "x.labels.csv"),
        ("folder/", "folder.labels.csv"),
        ("*.csv", "rows.labels.csv"),
    ],
)
def test_where_answers_go(rows, labels):
    assert default_labels(rows) == labels
