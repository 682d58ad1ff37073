"""Run time and memory by number of processes, in real MPI jobs."""

import sys

import pytest

from cli_tools import done
from pages import check_images, check_page
from paper import processes, ranks
from paper.pages import Output


def test_runtime_and_memory_share_real_mpi_jobs(tmp_path, monkeypatch):
    pytest.importorskip("mpi4py")
    plan = ranks.RankPlan(("random",), (1, 2), rows="3K", glnp_rows="1K", repeat=1)
    monkeypatch.setattr(ranks, "_measured", {})
    output = Output(tmp_path)
    part = processes.run_time(plan, output, print)
    launched = []
    monkeypatch.setattr(ranks, "launch", lambda *given: launched.append(given))
    for each in (part, processes.memory(plan, output, print)):
        output.keep(each)
    assert not launched
    page = (tmp_path / "paper.md").read_text()
    assert "7.67 on 8 (mnist8m)" in page
    assert "100%, 92%, +8 points" in page  # one rank, beside the mean of 7.67 / 8 and 7.08 / 8
    check_images(tmp_path, check_page(page))


def test_runtime_without_mpiexec_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(ranks, "_measured", {})
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    done("reproduce", "runtime", "--quick", "-o", tmp_path / "out", program="paper")
    assert 'pip install "biglp[mpich]"' in (tmp_path / "out" / "paper.md").read_text()
