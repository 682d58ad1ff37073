"""The experiments end to end on tiny data: pages without gaps, real plots, limits that hold."""

import csv
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.memory import private_memory
from biglp._experiments import all as experiments
from biglp._experiments import convergence, data, paper, peers, processes, ranks, scale, tables
from biglp._experiments.report import Clock, Output, Part, markdown_table
from biglp._experiments.sharing import transductions
from biglp._experiments.tables import draws
from cli_tools import done, failed
from helpers import blobs

TINY_TABLES = tables.Plan(
    trials=2,
    ks=(10,),
    figure_ks=(5,),
    wide_ks=(),
    names=("SUSY", "Gisette"),
    dense_rows=2_000,
    glnp_iterations=3,
)


@pytest.fixture
def archives(tmp_path, monkeypatch):
    """Small files in the shape of the real ones, in the folder that BIGLP_DATA names."""
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for stand_in in data.STAND_INS.values():
        truth = rng.integers(0, 10 if stand_in.file == "mnist.npz" else 3, 400)
        X = (rng.normal(size=(400, 6)) + 0.5 * truth[:, None]).astype(np.float32)
        np.savez(folder / stand_in.file, X=X, y=truth.astype(np.uint8))
    monkeypatch.setenv(data.VARIABLE, str(folder))
    return folder


def check_page(text):
    """No table has an empty cell, and every picture is shown from the folder beside."""
    for line in text.splitlines():
        if line.startswith("|") and not set(line) <= set("|-"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert all(cells), line
            assert "nan" not in [cell.lower() for cell in cells], line
    return re.findall(r"!\[[^]]+\]\((img/[^)]+)\.png\)", text)


def check_images(folder, names):
    for name in names:
        png, svg = folder / f"{name}.png", folder / f"{name}.svg"
        assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert png.stat().st_size < 200_000
        assert ElementTree.parse(svg).getroot().tag.endswith("svg")


# the paper's numbers


def test_papers_tables_parse_and_have_the_known_headlines():
    found = paper.tables()
    assert list(found) == ["HEPMASS", "SUSY", "mnist8m", "Protein", "Gisette"]
    for table in found.values():
        assert len(table.percent) == len(table.accuracy) == len(table.labels) == 4
        assert all(50 < value < 100 for line in table.accuracy for value in line.values())
        assert list(table.labels) == sorted(table.labels)
    assert found["mnist8m"].labels == (16, 164, 1648, 16488)
    assert found["mnist8m"].accuracy[0]["nystrom-kmeans 100"] == 72.86
    assert found["mnist8m"].best(1) == ("glnp 100", 91.16)
    assert found["SUSY"].best(3) == ("knn", 72.84)
    assert found["Protein"].best(3) == ("lp", 75.24)


def test_every_column_has_a_name_for_people():
    for column in paper.numbers()["columns"]:
        assert paper.column_name(column)


# sharing a graph


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


def test_draws_keep_the_test_rows_apart_and_are_nested():
    truth = np.arange(200) % 2
    found = draws(truth, [4, 20], trials=3)
    assert len(found) == 6
    for draw in found:
        assert len(draw.test) == 40
        assert (draw.labels[draw.test] == -1).all()
        assert (draw.labels >= 0).sum() == draw.count
        assert set(draw.labels[draw.labels >= 0]) == {0, 1}
    few, many = found[0].labels >= 0, found[1].labels >= 0
    assert (few <= many).all()


# each experiment through the command line


def test_tables_write_csv_plots_and_a_page_without_gaps(archives, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "QUICK", TINY_TABLES)
    out = tmp_path / "out"
    result = done("reproduce", "tables", "--quick", "-o", out)
    assert "Total:" in result.stdout
    page = (out / "paper.md").read_text()
    assert check_page(page) == ["img/classification"]
    check_images(out, ["img/classification"])
    assert "The subset is too small for" in page
    assert "2 trials instead of the paper's 10" in page
    assert "Not run here. Run `biglp reproduce scale`" in page
    with open(out / "results" / "tables.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["paper_data"] for row in rows} == {"SUSY", "Gisette"}
    row = next(r for r in rows if (r["method"], r["k"]) == ("nystrom-kmeans", "10"))
    assert float(row["difference"]) == pytest.approx(
        float(row["ours"]) - float(row["paper"]), abs=0.011
    )
    assert all(all(row.values()) for row in rows)


def test_missing_data_is_explained_on_the_page_and_on_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv(data.VARIABLE, str(tmp_path / "nowhere"))
    monkeypatch.setattr(tables, "QUICK", TINY_TABLES)
    result = done("reproduce", "tables", "--quick", "-o", tmp_path / "out")
    page = (tmp_path / "out" / "paper.md").read_text()
    for text in (page, result.stdout):
        assert "susy_subset_30k.npz is missing" in text
        assert "Set BIGLP_DATA to a folder" in text
    assert "digits 4 v 9" in page  # what comes with scikit-learn stands in
    check_page(page)


def test_convergence_has_both_solvers_on_three_sets(archives, tmp_path, monkeypatch):
    monkeypatch.setattr(convergence, "QUICK", convergence.Plan(iterations=6, most_rows=60))
    done("reproduce", "convergence", "--quick", "-o", tmp_path / "out")
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


def test_runtime_without_mpiexec_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(ranks, "_measured", {})
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    done("reproduce", "runtime", "--quick", "-o", tmp_path / "out")
    assert 'pip install "biglp[mpich]"' in (tmp_path / "out" / "paper.md").read_text()


def test_scale_keeps_extrapolation_apart_from_measurement(tmp_path, monkeypatch):
    tiny = scale.Plan(rows="3K", features=8, k=5, methods=("random",), memory="1GB")
    monkeypatch.setattr(scale, "QUICK", tiny)
    done("reproduce", "scale", "--quick", "-o", tmp_path / "out")
    page = (tmp_path / "out" / "paper.md").read_text()
    measured, extrapolated = page.split("Extrapolated to 100,000,000 rows, not measured")
    assert "Measured, 3,000 × 8" in measured
    assert "extrapolated" not in measured.lower()
    assert "about" in extrapolated
    with open(tmp_path / "out" / "results" / "scale.csv", newline="") as file:
        assert [row["kind"] for row in csv.DictReader(file)] == ["measured"]
    check_images(tmp_path / "out", check_page(page))


def test_an_unknown_experiment_is_refused(tmp_path):
    message = failed(2, "reproduce", "everything", "-o", tmp_path / "out")
    assert "tables, runtime, memory, convergence, scale or all" in message


def test_missing_matplotlib_gives_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = failed(6, "reproduce", "tables", "-o", tmp_path / "out")
    assert 'pip install "biglp[plot]"' in message


# the page


def test_an_empty_cell_is_a_mistake():
    with pytest.raises(ValueError, match="'b' has an empty cell"):
        markdown_table(["a", "b"], [["1", " "]])


def test_a_part_run_again_alone_replaces_only_itself(tmp_path):
    output = Output(tmp_path)
    for name, body in (("runtime", "first"), ("scale", "other"), ("runtime", "second")):
        output.keep(Part(name, name, body, facts=Clock().facts()))
    page = (tmp_path / "paper.md").read_text()
    assert "second" in page
    assert "other" in page
    assert "first" not in page


def test_all_is_every_experiment(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(experiments, "_run", lambda name, *_: ran.append(name) or [])
    experiments.reproduce("all", tmp_path, quick=True, say=print)
    assert tuple(ran) == experiments.EXPERIMENTS


# peers


def test_memory_of_an_ended_process_is_not_our_own():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    deadline = time.monotonic() + 30
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert private_memory(process.pid) == 0  # it has ended, but nobody has asked for its exit code
    process.wait()


LIMITS = peers.Limits(seconds=20.0, memory=2**30)


def fake_peer(folder, body):
    """A program in a peer's place."""
    (folder / "peer.py").write_text(body)
    return (sys.executable, str(folder / "peer.py"))


def outcome_of(folder, body, limits):
    truth, labels = np.zeros(5, dtype=int), np.full(5, -1)
    program = fake_peer(folder, body)
    return peers.run_one("fake", folder, 5, "nothing", truth, labels, limits, program)


def test_a_slow_peer_is_ended(tmp_path):
    limits = replace(LIMITS, seconds=0.3)
    for body in ("while True: pass", "import time; time.sleep(60)"):
        began = time.monotonic()
        found = outcome_of(tmp_path, body, limits)
        assert found.seconds is None
        assert found.why == "more than 0.3 s"
        assert time.monotonic() - began < 30


def test_a_greedy_peer_is_ended_before_it_has_all(tmp_path):
    body = "import time\nheld = []\nwhile True:\n    held.append(b'x' * 2**22); time.sleep(0.005)"
    found = outcome_of(tmp_path, body, replace(LIMITS, memory=100 * 2**20))
    assert "of memory" in found.why
    assert 100 * 2**20 < found.peak < 400 * 2**20


def test_a_peer_that_is_not_installed_or_fails_is_said(tmp_path):
    missing = outcome_of(tmp_path, "raise SystemExit(6)", LIMITS)
    assert missing.why == 'not installed (pip install "biglp[peers]")'
    broken = outcome_of(tmp_path, "raise ValueError('no such luck')", LIMITS)
    assert broken.why == "failed: ValueError: no such luck"


def test_a_stopped_peer_is_not_run_on_more_rows(tmp_path, monkeypatch):
    asked = []

    def pretend(method, folder, n_rows, what, truth, labels, limits):
        asked.append((method, n_rows))
        if method == "5-NN":
            return peers.Outcome(method, n_rows, what, why="more than 300 s")
        return peers.Outcome(method, n_rows, what, 0.1, 0.1, 2**20, 0.9)

    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setattr(peers, "run_one", pretend)
    done("bench", "peers", "--sizes", "200,400", "-o", tmp_path)
    assert ("5-NN", 200) in asked
    assert ("5-NN", 400) not in asked
    page = (tmp_path / "peers.md").read_text()
    assert "not run: more than 300 s at 200 rows" in page
    assert "simulated, 100 features" in page
    check_images(tmp_path, check_page(page))


def test_peers_label_real_rows_within_their_limits(tmp_path, monkeypatch):
    """Two methods in real processes, on simulated rows."""
    monkeypatch.delenv(data.VARIABLE, raising=False)
    chosen = {name: peers.METHODS[name] for name in ("biglp", "5-NN")}
    monkeypatch.setattr(peers, "METHODS", chosen)
    found = peers.run([300], peers.Limits(), Output(tmp_path), print)
    assert [outcome.why for outcome in found] == ["", ""]
    assert all(outcome.accuracy > 0.2 and outcome.peak > 2**20 for outcome in found)
    assert all(outcome.seconds > 0 for outcome in found)


def test_the_verdict_needs_speed_and_accuracy():
    def pair(seconds, accuracy):
        n = peers.REFERENCE_ROWS
        ours = peers.Outcome(peers.OURS, n, "MNIST", 1.0, 1.0, 1, 0.9)
        return [ours, peers.Outcome(peers.REFERENCE, n, "MNIST", seconds, seconds, 1, accuracy)]

    assert peers.verdict(pair(25.0, 0.9))[0] is True
    assert peers.verdict(pair(19.0, 0.9))[0] is False
    assert peers.verdict(pair(25.0, 0.91))[0] is False
    assert peers.verdict([])[0] is None


def test_bad_sizes_are_explained(tmp_path):
    assert "--sizes" in failed(2, "bench", "peers", "--sizes", "many", "-o", tmp_path)
