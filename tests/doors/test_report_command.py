"""The report of a fit: what it shows of the rows, and how it is made again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_tools import done, failed, run
from report_tools import seen

EVIL = "<script>alert('no')</script>"
WORDS = {"cat": "whiskers purr and the tail is soft", EVIL: "bark loud at the garden gate today"}
QUICK = ("-k", "30")


def read(path="out/report.html"):
    return seen(Path(path).read_text(encoding="utf-8"))


def without_times(path="out/report.html"):
    """The page from the map on up to what is said of the run."""
    html = Path(path).read_text(encoding="utf-8")
    return re.search(r'<section id="done".*<section id="next"', html, re.S)[0]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Animals: text of words, a number, an ID, and hostile names all over."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.choice(list(WORDS), 240)
    text = [
        " ".join(rng.permutation(WORDS[name].split())[:5]) + f" {EVIL} number {row}"
        for row, name in enumerate(truth)
    ]
    columns = {
        "key": [f"<b>{row}</b>" for row in range(240)],
        "said": text,
        EVIL: np.where(truth == "cat", 1.0, 5.0) + rng.normal(0, 0.5, 240),
        "weight": rng.normal(size=240),
        "animal": [name if row < 40 else None for row, name in enumerate(truth)],
    }
    pq.write_table(pa.table(columns), "animals.parquet")
    return ("fit", "animals.parquet", "--label-column", "animal", "--id-column", "key", *QUICK)


def test_texts_ids_and_columns_are_shown_as_text(table):
    done(*table, "--text", "said", "-o", "out")
    page = read()
    assert page.text.startswith("animals.parquet: 240 rows labelled from 40 labels")
    for shown in (EVIL, "<b>", "whiskers", "biglp suggest out -n 20"):
        assert shown in page.text, shown
    assert "<script" not in Path("out/report.html").read_text(encoding="utf-8")
    files = json.loads(Path("out/summary.json").read_text())["files"]
    assert files["report"] == "out/report.html"


def test_made_again(table):
    done(*table, "-o", "out")
    assert "whiskers" in read().text  # text that is no feature is worth reading all the same
    before = without_times()
    assert "Written in" in done("report", "out").stdout
    assert without_times() == before
    done("report", "out", "-o", "other.html")
    assert without_times("other.html") == before
    assert "exists already" in failed(2, "report", "out", "-o", "other.html")
    done("report", "out", "-o", "other.html", "--overwrite")


def test_rows_that_are_gone(table):
    done(*table, "-o", "out")
    Path("animals.parquet").rename("gone.parquet")
    told = done("report", "out").stdout
    assert "There is no map" in told
    page = read()
    assert "There is no map, and there are no rows to look at" in page.text
    assert "Members and their weights" in page.text


def test_a_report_that_was_left_out_is_made_later(table):
    done(*table, "-o", "out", "--no-report")
    assert not Path("out/report.html").exists()
    done("report", "out")
    assert "#map" in {value for _, _, value in read().attributes}


def test_no_folder_of_a_fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "not the folder of a finished biglp fit" in failed(2, "report", "nothing")
    Path("rows").mkdir()
    Path("rows/summary.json").write_text('{"run": {"command": "predict"}}')
    assert "biglp fit -o" in failed(2, "report", "rows")


def test_a_run_that_ends_before_its_page_goes_on(table, monkeypatch):
    done(*table, "-o", "whole")

    def broken(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("biglp._jobs.fit.page", broken)
        assert run(*table, "-o", "out").exit_code != 0
    assert [path.name for path in Path("out").iterdir()] == [".biglp-run"]
    done(*table, "-o", "out", "--resume")
    assert without_times().replace("out", "whole") == without_times("whole/report.html").replace(
        "out", "whole"
    )


def test_an_old_report_does_not_stay_beside_new_labels(table):
    done(*table, "-o", "out")
    assert "report.html" in failed(2, *table, "-o", "out")
    done(*table, "-o", "out", "--overwrite", "--no-report")
    assert not Path("out/report.html").exists()


def test_hundreds_of_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(300), 8)
    np.save("rows.npy", rng.normal(size=(300, 6))[truth] * 9 + rng.normal(size=(2400, 6)))
    np.save("labels.npy", np.where(np.arange(2400) % 8 < 2, truth, -1))
    done("fit", "rows.npy", "--labels", "labels.npy", "-o", "out", "--factor", "anchors", *QUICK)
    page = read()
    assert "and 200 smaller classes" in page.text
    assert Path("out/report.html").stat().st_size < 1 << 20


def test_a_graph_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 30)
    graph = np.where(truth[:, None] == truth, rng.random((60, 60)), 0.01)
    np.save("graph.npy", (graph + graph.T) / 2)
    np.save("labels.npy", np.where(np.arange(60) % 30 < 3, truth, -1))
    fit = ("fit", "graph.npy", "--labels", "labels.npy", "--factor", "precomputed")
    done(*fit, "-o", "out")
    assert "ties of a graph of your own" in read().text
    done("report", "out")
    assert "ties of a graph of your own" in read().text


@pytest.mark.parametrize("key", ["column", "unlabelled"])
def test_a_summary_that_lacks_something_is_explained(key, tmp_path, monkeypatch):
    """As a damaged one may."""
    monkeypatch.chdir(tmp_path)
    done("fit", "sim:500x3", "-o", "out", "--factor", "linear", "-q")
    path = tmp_path / "out" / "summary.json"
    summary = json.loads(path.read_text())
    del summary["run"]["labels"][key]
    path.write_text(json.dumps(summary))
    assert (
        "without the results of a finished biglp fit" in done("report", "out", "--overwrite").stdout
    )
