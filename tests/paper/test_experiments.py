"""The experiments on tiny data, through the command line, and what their pages say."""

import csv

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from cli_tools import done
from helpers import blobs
from pages import check_images, check_page
from paper import convergence, processes, ranks, scale, tables
from paper.pages import Output
from paper.tables import transductions


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


def test_scale_keeps_extrapolation_apart_from_measurement(tmp_path, monkeypatch):
    tiny = scale.Plan(rows="3K", features=8, k=5, methods=("random",), memory="1GB")
    monkeypatch.setattr(scale, "QUICK", tiny)
    done("reproduce", "scale", "--quick", "-o", tmp_path / "out", program="paper")
    page = (tmp_path / "out" / "paper.md").read_text()
    measured, extrapolated = page.split("Extrapolated to 100,000,000 rows, not measured")
    assert "Measured, 3,000 × 8" in measured
    assert "extrapolated" not in measured.lower()
    assert "about" in extrapolated
    with open(tmp_path / "out" / "results" / "scale.csv", newline="") as file:
        assert [row["kind"] for row in csv.DictReader(file)] == ["measured"]
    check_images(tmp_path / "out", check_page(page))


@pytest.mark.filterwarnings("ignore::biglp._core.errors.DegreeWarning")  # centred features
@pytest.mark.parametrize("method", ["nystrom-kmeans", "nystrom-random", "linear", "glnp-apgd"])
def test_shared_graph_gives_the_labels_of_separate_fits(method):
    X, y, _ = blobs(n=150, classes=2, labelled=12)
    X = np.abs(X)
    other = np.where(np.arange(150) % 7 == 0, np.arange(150) % 2, -1)
    estimator = LowRankLabelPropagation.paper(method, k=8, random_state=3, engine="serial")
    if method == "glnp-apgd":
        estimator.factor_params = {"start": "uniform", "max_iter": 250}
    shared = list(transductions(estimator, X, [y, other]))
    for labels, answer in zip((y, other), shared, strict=True):
        np.testing.assert_array_equal(answer, estimator.fit(X, labels).transduction_)


TINY_TABLES = tables.Plan(
    trials=2,
    ks=(10,),
    figure_ks=(5,),
    wide_ks=(),
    names=("SUSY", "Gisette"),
    dense_rows=2_000,
    glnp_iterations=3,
)


def test_tables_write_csv_plots_and_a_page_without_gaps(archives, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "QUICK", TINY_TABLES)
    out = tmp_path / "out"
    result = done("reproduce", "tables", "--quick", "-o", out, program="paper")
    assert "Total:" in result.stdout
    page = (out / "paper.md").read_text()
    assert check_page(page) == ["img/classification"]
    check_images(out, ["img/classification"])
    assert "The subset is too small for" in page
    assert "2 trials instead of the paper's 10" in page
    assert "Not run here. Run `python -m paper reproduce scale`" in page
    with open(out / "results" / "tables.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["paper_data"] for row in rows} == {"SUSY", "Gisette"}
    row = next(r for r in rows if (r["method"], r["k"]) == ("nystrom-kmeans", "10"))
    assert float(row["difference"]) == pytest.approx(
        float(row["ours"]) - float(row["paper"]), abs=0.011
    )
    assert all(all(row.values()) for row in rows)
