"""The demo's report in a real browser: from disk, without scripts, on any screen, and on paper."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli_tools import done

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MOST_BYTES = 2_000_000

if CHROMIUM is None:
    pytest.skip("no chromium on this machine (apt-get install chromium)", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The file that the demo ends by naming."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("demo"))
        named = done("demo").stdout.split("open in a browser: ")[1].strip()
        return Path(named).absolute()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


def test_read_without_scripts_and_network(report, browser):
    assert report.stat().st_size < MOST_BYTES
    context = browser.new_context(java_script_enabled=False, offline=True)
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
def test_fits_the_screen_and_reads_well(report, browser, scheme, width):
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        bypass_csp=True,  # axe is a script
    )
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.Axe().run(page).response["violations"]
    assert not [each["id"] for each in found if each["impact"] in ("serious", "critical")]
    context.close()
