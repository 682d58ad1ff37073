"""Peers in processes of their own, with limits that hold."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from biglp._core.memory import private_memory
from paper import peers as peer_runs

LIMITS = peer_runs.Limits(seconds=20.0, memory=2**30)


def test_memory_of_an_ended_process_is_not_our_own():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    deadline = time.monotonic() + 30
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert private_memory(process.pid) == 0  # it has ended, but nobody has asked for its exit code
    process.wait()


def fake_peer(folder, body):
    """A program in a peer's place."""
    (folder / "peer.py").write_text(body)
    return (sys.executable, str(folder / "peer.py"))


def outcome_of(folder, monkeypatch, body, limits):
    monkeypatch.setattr(peer_runs, "PROGRAM", fake_peer(folder, body))
    problem = peer_runs.Problem(folder, "nothing", np.zeros(5, dtype=int), np.full(5, -1))
    return peer_runs.run_one("fake", problem, limits)


def test_a_slow_peer_is_ended(tmp_path, monkeypatch):
    limits = replace(LIMITS, seconds=0.3)
    for body in ("while True: pass", "import time; time.sleep(60)"):
        began = time.monotonic()
        found = outcome_of(tmp_path, monkeypatch, body, limits)
        assert found.seconds is None
        assert found.why == "more than 0.3 s"
        assert time.monotonic() - began < 30


def test_a_greedy_peer_is_ended_before_it_has_all(tmp_path, monkeypatch):
    body = "import time\nheld = []\nwhile True:\n    held.append(b'x' * 2**22); time.sleep(0.005)"
    found = outcome_of(tmp_path, monkeypatch, body, replace(LIMITS, memory=100 * 2**20))
    assert "of memory" in found.why
    assert 100 * 2**20 < found.peak < 400 * 2**20


def test_a_peer_that_is_not_installed_or_fails_is_said(tmp_path, monkeypatch):
    missing = outcome_of(tmp_path, monkeypatch, "raise SystemExit(6)", LIMITS)
    assert missing.why == 'not installed (pip install "biglp[peers]")'
    broken = outcome_of(tmp_path, monkeypatch, "raise ValueError('no such luck')", LIMITS)
    assert broken.why == "failed: ValueError: no such luck"
