"""The server as a process: killed at any moment, ended by Ctrl-C, refused where it must be."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

from biglp._labelling import LabelsFile
from browser_tools import Served
from cli_tools import failed
from label_tools import made_rows


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "rows.npy", made_rows(300)[0])
    return tmp_path


@pytest.fixture
def served(folder):
    made = Served(folder, "rows.npy", "--memory", "600MB")
    yield made
    made.stop()


@contextmanager
def client_of(served):
    own = {"origin": served.origin, "x-biglp": "1"}
    with httpx.Client(base_url=served.origin, headers=own, timeout=60) as client:
        assert client.get(served.url).status_code == 303
        yield client


def answer(client, what):
    assert client.post("/api/answer", json=what).json()["saved"]


def test_killed_at_random_moments(folder, served):
    """Each time answers are sent as fast as they go; benchmarks/label.py has more."""
    rng, confirmed, sent, row = random.Random(0), {}, {}, 0

    def on_disk():
        lines = LabelsFile(folder / "answers.csv", "row", lambda rows: []).read()
        found = {int(key): label for key, label in lines}
        assert len(found) == len(lines)
        return found

    def send_again(client):
        for again in sent.values():
            answer(client, again)
            confirmed[again["row"]] = again["label"]
        sent.clear()

    for _ in range(2):
        with client_of(served) as client:
            state = client.get("/api/state").json()
            assert state["labelled"] in (len(confirmed), len(confirmed) + 1)
            send_again(client)
            killed, pid = len(confirmed) + rng.randint(6, 12), served.process.pid
            while True:
                if len(confirmed) == killed:  # while the next ones are on their way
                    threading.Timer(rng.uniform(0, 0.05), os.kill, (pid, signal.SIGKILL)).start()
                what = {"row": row, "label": f"c{row % 3}", "answer": str(uuid.uuid4())}
                row += 1
                sent[what["answer"]] = what
                try:
                    answer(client, what)
                except httpx.TransportError:
                    if len(confirmed) >= killed:
                        break
                    # The server has closed a connection that a busy machine left unused.
                    answer(client, what)
                confirmed[what["row"]] = sent.pop(what["answer"])["label"]
        assert served.process.wait() == -signal.SIGKILL
        assert on_disk().items() >= confirmed.items()
        served.start()
    assert len(confirmed) > 10
    with client_of(served) as client:
        send_again(client)
        assert on_disk() == confirmed
        # Another server of the same file is refused; this one goes on until Ctrl-C ends it.
        message = failed(2, "label", folder / "rows.npy", "--labels", folder / "answers.csv")
        assert "in use" in message
        assert client.get("/api/state").status_code == 200
        with client.stream("GET", "/api/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            os.kill(served.process.pid, signal.SIGINT)
            assert [line for line in lines if line.startswith("event")] == []  # it ends
        assert served.process.wait(60) == 0
        assert served.process.stderr == ""


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (2, ["--host", "0.0.0.0"], "--i-know"),
        (2, ["--shape", "9x9"], "--shape '9x9'"),
        (2, ["--show", "a"], "--show 'a'"),
        (3, ["--classes", "a,NA"], "'NA'"),
        (2, ["--port"], "--port {port}"),
    ],
)
def test_options_that_are_refused(folder, code, options, message):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        more = [*options, port] if options == ["--port"] else options
        said = failed(code, "label", folder / "rows.npy", "--labels", folder / "a.csv", *more)
    assert message.format(port=port) in said


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
