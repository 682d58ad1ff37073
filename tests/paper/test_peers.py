"""Peers in processes of their own, with limits that hold, and the page that compares them."""

import sys
import time
from dataclasses import replace

import numpy as np

from cli_tools import done
from pages import check_images, check_page
from paper import pages, peers
from paper.peers import Outcome

LIMITS = peers.Limits(seconds=20.0, memory=2**30)


def fake_peer(folder, body):
    (folder / "peer.py").write_text(body)
    return (sys.executable, str(folder / "peer.py"))


def outcome_of(folder, monkeypatch, body, limits):
    monkeypatch.setattr(peers, "PROGRAM", fake_peer(folder, body))
    problem = peers.Problem(folder, "nothing", np.zeros(5, dtype=int), np.full(5, -1))
    return peers.run_one("fake", problem, limits)


def test_a_slow_peer_is_ended(tmp_path, monkeypatch):
    limits = replace(LIMITS, seconds=0.3)
    for body in ("while True: pass", "import time; time.sleep(60)"):
        began = time.monotonic()
        found = outcome_of(tmp_path, monkeypatch, body, limits)
        assert found.seconds is None
        assert found.why == "more than 0.3 s"
        assert time.monotonic() - began < 30


def test_a_peer_that_is_not_installed_or_fails_is_said(tmp_path, monkeypatch):
    missing = outcome_of(tmp_path, monkeypatch, "raise SystemExit(6)", LIMITS)
    assert missing.why == 'not installed (pip install "biglp[peers]")'
    broken = outcome_of(tmp_path, monkeypatch, "raise ValueError('no such luck')", LIMITS)
    assert broken.why == "failed: ValueError: no such luck"


def test_a_stopped_peer_is_not_run_on_more_rows(tmp_path, monkeypatch):
    asked = []

    def pretend(method, problem, limits):
        asked.append((method, problem.n_rows))
        if method == "5-NN":
            return Outcome(method, problem.n_rows, problem.data, why="more than 300 s")
        return Outcome(method, problem.n_rows, problem.data, 0.1, 0.1, 2**20, 0.9)

    monkeypatch.delenv(pages.VARIABLE, raising=False)
    monkeypatch.setattr(peers, "run_one", pretend)
    done("peers", "--sizes", "200,400", "-o", tmp_path, program="paper")
    assert ("5-NN", 200) in asked
    assert ("5-NN", 400) not in asked
    page = (tmp_path / "peers.md").read_text()
    assert "not run: more than 300 s at 200 rows" in page
    assert "simulated, 100 features" in page
    check_images(tmp_path, check_page(page))
