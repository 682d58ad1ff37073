"""The convergence experiment on tiny data, through the command line."""

import csv

import pytest

from cli_tools import done
from pages import check_images, check_page
from paper import convergence


def test_convergence_has_both_solvers_on_three_sets(archives, tmp_path, monkeypatch):
    monkeypatch.setattr(convergence, "QUICK", convergence.Plan(iterations=6, most_rows=60))
    done("reproduce", "convergence", "--quick", "-o", tmp_path / "out", program="paper")
    page = (tmp_path / "out" / "paper.md").read_text()
    check_images(tmp_path / "out", check_page(page))
    with open(tmp_path / "out" / "results" / "convergence.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(r["paper_data"], r["solver"]) for r in rows} == {
        (name, solver)
        for name in ("Gisette", "Protein", "HEPMASS")
        for solver in ("gradient", "multiplicative")
    }
    starts = {}  # both solvers begin at the same F on the same X
    for row in rows:
        if row["iteration"] == "0":
            starts.setdefault((row["data"], row["start"]), []).append(float(row["objective"]))
    assert all(first == pytest.approx(second, rel=1e-3) for first, second in starts.values())
    times = [float(r["seconds"]) for r in rows[:7]]
    assert times == sorted(times)
    assert times[0] == 0.0
