"""The page of ``biglp fit``: what it shows of the rows, how it is made again, and in a browser."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browser_tools import browser, why_no_browser
from cli_tools import done, failed, run
from report_tools import seen

EVIL = "<script>alert('no')</script>"
WORDS = {"cat": "whiskers purr and the tail is soft", EVIL: "bark loud at the garden gate today"}
QUICK = ("-k", "30")
MOST_BYTES = 2_000_000


def read(path="out/report.html"):
    return seen(Path(path).read_text(encoding="utf-8"))


def without_times(path="out/report.html"):
    html = Path(path).read_text(encoding="utf-8")
    return re.search(r'<section id="done".*<section id="next"', html, re.S)[0]


@pytest.fixture
def table(here):
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
    Path("animals.parquet").rename("gone.parquet")
    assert "There is no map" in done("report", "out").stdout
    page = read()
    assert "There is no map, and there are no rows to look at" in page.text
    assert "Members and their weights" in page.text


@pytest.mark.parametrize("lacks", ["a run", "columns"])
def test_a_summary_that_lacks_something_is_explained(here, lacks):
    done("fit", "sim:500x3", "-o", "out", "--factor", "linear", "-q")
    path = here / "out" / "summary.json"
    summary = json.loads(path.read_text())
    if lacks == "a run":
        path.write_text('{"run": {"command": "predict"}}')
        assert "biglp fit -o" in failed(2, "report", "out")
        assert "not the folder of a finished biglp fit" in failed(2, "report", "nothing")
        return
    for key in ("column", "unlabelled"):
        del summary["run"]["labels"][key]
    path.write_text(json.dumps(summary))
    told = done("report", "out", "--overwrite").stdout
    assert "without the results of a finished biglp fit" in told


def test_a_run_that_ends_before_its_page_goes_on(table, monkeypatch):
    done(*table, "-o", "whole")

    def broken(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("biglp._jobs.fit.page", broken)
        assert run(*table, "-o", "out").exit_code != 0
    assert [path.name for path in Path("out").iterdir()] == [".biglp-run"]
    done(*table, "-o", "out", "--resume")
    resumed, whole = without_times(), without_times("whole/report.html")
    assert resumed.replace("out", "whole") == whole.replace("out", "whole")
    # An old report does not stay beside new labels.
    assert "report.html" in failed(2, *table, "-o", "out")
    done(*table, "-o", "out", "--overwrite", "--no-report")
    assert not Path("out/report.html").exists()


def test_a_graph_of_ones_own(here):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 30)
    graph = np.where(truth[:, None] == truth, rng.random((60, 60)), 0.01)
    np.save("graph.npy", (graph + graph.T) / 2)
    np.save("labels.npy", np.where(np.arange(60) % 30 < 3, truth, -1))
    fit = ("fit", "graph.npy", "--labels", "labels.npy", "--factor", "precomputed", "-o", "out")
    for command in (fit, ("report", "out")):
        done(*command)
        assert "ties of a graph of your own" in read().text


# The demo's report in a real browser: from disk, without scripts, on any screen, and on paper ----


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("demo"))
        named = done("demo").stdout.split("open in a browser: ")[1].strip()
        return Path(named).absolute()


@pytest.fixture(scope="module")
def chromium():
    if why_no_browser():
        pytest.skip(why_no_browser())
    with browser() as made:
        yield made


def test_read_without_scripts_and_network(report, chromium):
    assert report.stat().st_size < MOST_BYTES
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    text = page.inner_text("main")
    for shown in ("digits.parquet: 1,797 rows labelled from 50 labels", "Rows to look at", "Map"):
        assert shown in text
    assert page.locator("img").count() >= 100  # digits, as pictures
    assert all(url.startswith(("file:", "data:")) for url in asked)
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert 2 <= paper.count(b"/Type /Page\n") <= 20
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_fits_the_screen_and_reads_well(report, chromium, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    size = {"width": width, "height": 900}
    # Axe is a script.
    context = chromium.new_context(color_scheme=scheme, viewport=size, bypass_csp=True)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert not [each["id"] for each in found if each["impact"] in ("serious", "critical")]
    context.close()
