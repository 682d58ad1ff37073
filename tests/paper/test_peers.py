"""Peers in processes of their own, with limits that hold, and the page that compares them."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from biglp._core import ParameterError
from cli_tools import done, failed
from pages import check_images, check_page
from paper import lploka, pages, peers
from paper.pages import Output
from paper.peers import Limits, Outcome, run_one, write_problem

LIMITS = peers.Limits(seconds=20.0, memory=2**30)


def fake_peer(folder, body):
    """A program in a peer's place."""
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


def test_peers_label_real_rows_within_their_limits(tmp_path, monkeypatch):
    """Two methods in real processes, on simulated rows."""
    monkeypatch.delenv(pages.VARIABLE, raising=False)
    chosen = {name: peers.METHODS[name] for name in ("biglp", "5-NN")}
    monkeypatch.setattr(peers, "METHODS", chosen)
    found = peers.run([300], Limits(), Output(tmp_path), print)
    assert [outcome.why for outcome in found] == ["", ""]
    assert all(outcome.accuracy > 0.2 and outcome.peak > 2**20 for outcome in found)
    assert all(outcome.seconds > 0 for outcome in found)


LAUNCHER = '#!/bin/sh\nshift\nexport RANKS=$1\nshift\nexec {python} "$@"\n'
BEGIN = """
import os, sys
import numpy as np
ranks = int(os.environ["RANKS"])
given = dict(zip(sys.argv[1:-1], sys.argv[2:]))
n, k = int(given["-n"]), int(given["-k"])
each = -(-n // ranks)
"""
NYSTROM = """
if each < k:
    sys.exit("Error: Make sure ceil(n/np) > k")
C = np.loadtxt(given["-i"])
assert C.shape == (n, k)
C[range(k), range(k)] = C.sum(axis=0)
values, vectors = np.linalg.eigh(C[:k])
F = np.zeros((each * ranks, k))
F[:n] = C @ vectors / np.sqrt(values)
for rank in range(ranks):
    with open(f"{given['-o']}{rank}.txt", "w") as file:
        for row in F[rank * each : (rank + 1) * each]:
            file.write("".join(f"{x:.{given['-p']}g} " for x in row) + "\\n")
print("Parallel Run Time: 0.25")
"""
LPLOKA = """
F = np.loadtxt(given["-F"])[:n]
degrees = F @ F.sum(axis=0)
F /= np.sqrt(np.abs(degrees))[:, None]
alpha, tol = float(given["-alpha"]), float(given["-tol"])
for q in range(int(given["-startIndex"]), int(given["-endIndex"])):
    f0 = np.loadtxt(f"{given['-f0']}/{q + 1}.txt")
    f = np.full(n, 1 / n)
    for _ in range(int(given["-maxIter"])):
        before, f = f, alpha * (F @ (F.T @ f)) + (1 - alpha) * f0
        if np.abs(f - before).max() < tol:
            break
    with open(f"{given['-o']}/{q + 1}.txt", "a") as file:
        file.write("".join(f"{x:.9g}\\n" for x in f[: int(given["-saveRows"])]))
    print("Parallel Run Time: 0.5")
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A folder with the two programs, and a launcher on the PATH."""
    folder = tmp_path / "build"
    folder.mkdir()
    for name, body in (("nystrom", NYSTROM), ("lploka", LPLOKA)):
        (folder / name).write_text(BEGIN + body)
    launcher = tmp_path / "mpirun"
    launcher.write_text(LAUNCHER.format(python=sys.executable))
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="the launcher is a shell script")
def test_both_programs_label_the_same_rows_on_any_number_of_ranks(tmp_path, monkeypatch, stand_in):
    monkeypatch.delenv("BIGLP_DATA", raising=False)
    (tmp_path / "rows").mkdir()
    problem = write_problem(tmp_path / "rows", 301)
    answers, outcomes = [], []
    for ranks in (1, 3):
        settings = lploka.LpLoka(stand_in, ranks)
        settings.check()
        outcome = run_one(lploka.NAME, problem, Limits(), settings.program())
        assert outcome.why == ""
        assert outcome.accuracy > 0.2  # of ten classes
        answers.append(np.load(problem.folder / "answer.npy"))
        outcomes.append(outcome)
    stages = outcomes[0].stages
    assert stages["nystrom, computation"] == 0.25
    assert stages["lploka, computation"] == 0.5 * 10  # once a class
    counted = sum(stages[name] for name in ("similarities", "nystrom", "lploka"))
    assert outcomes[0].seconds == pytest.approx(counted)
    assert (answers[0] == answers[1]).mean() > 0.9  # landmarks are fewer on more ranks
    page = "\n".join(peers._stages(outcomes))
    assert "LP-LOKA's stages" in page
    assert "0.25 s" in page


def test_a_folder_without_the_programs_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="has no program nystrom and no lploka"):
        lploka.LpLoka(tmp_path, 2).check()
    told = failed(
        2, "peers", "--sizes", "200", "--lp-loka", tmp_path, "-o", tmp_path, program="paper"
    )
    assert "--lp-loka" in told
