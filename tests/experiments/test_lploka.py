"""LP-LOKA as a peer, with a stand-in that reads and writes the formats of its two programs.

The stand-in computes what LP-LOKA's sources say, in NumPy and in one process; the launcher tells it
how many ranks to act for. The real programs are not part of the tests.
"""

import os
import sys

import numpy as np
import pytest

from biglp._core.errors import ParameterError
from cli_tools import failed
from paper import lploka
from paper import peers as peer_page
from paper.peers import Limits, run_one, write_problem

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
    page = "\n".join(peer_page._stages(outcomes))
    assert "LP-LOKA's stages" in page
    assert "0.25 s" in page


@pytest.mark.skipif(sys.platform == "win32", reason="the launcher is a shell script")
def test_a_program_that_fails_is_said(tmp_path, monkeypatch, stand_in):
    monkeypatch.delenv("BIGLP_DATA", raising=False)
    (stand_in / "lploka").write_text("raise SystemExit('Error: The F file cannot be found')")
    (tmp_path / "rows").mkdir()
    problem = write_problem(tmp_path / "rows", 150)
    settings = lploka.LpLoka(stand_in, 1)
    outcome = run_one(lploka.NAME, problem, Limits(), settings.program())
    assert outcome.why.endswith("lploka ended with 1: Error: The F file cannot be found")


def test_a_folder_without_the_programs_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="has no program nystrom and no lploka"):
        lploka.LpLoka(tmp_path, 2).check()
    told = failed(
        2, "peers", "--sizes", "200", "--lp-loka", tmp_path, "-o", tmp_path, program="paper"
    )
    assert "--lp-loka" in told
