"""One browser and three servers for all tests of the page."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from browser_tools import DESKTOP, IMAGE, SCRIPT, Labelling, Served, browser, why_no_browser

TOPICS = ("the goal, the match and the team", "the market, the price and the bank")


def pytest_collection_modifyitems(items):
    """Say once why browser tests are left out."""
    reason = why_no_browser()
    for item in items:
        if reason and "browser" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=f"browser tests skipped: {reason}"))


@pytest.fixture(scope="module")  # its event loop must not run on under tests of other rooms
def chromium():
    with browser() as made:
        yield made


@pytest.fixture
def visit(chromium):
    """Open a page as a new visitor; checks at the end that nothing failed and nothing left."""
    visited = []

    def come(served, **options):
        context = chromium.new_context(viewport=DESKTOP, **options)
        asked = []
        context.on("request", lambda request: asked.append(request.url))
        page = Labelling(context.new_page())
        visited.append((context, page, served, asked))
        return page.open(served.url)

    yield come
    for context, page, served, asked in visited:
        context.close()
        outside = [url for url in asked if not url.startswith((served.origin, "data:", "blob:"))]
        assert asked
        assert not outside
        assert not [line for line in page.said if "ERR_" not in line]


@pytest.fixture(scope="session")
def shapes():
    """Images of 8 × 8 pixels: bars, poles and rings, with noise.  (rows, names)"""
    rng = np.random.default_rng(5)
    drawn = np.zeros((3, 8, 8))
    drawn[0, 3:5, :] = 1
    drawn[1, :, 3:5] = 1
    drawn[2, 1:7, 1:7] = 1
    drawn[2, 2:6, 2:6] = 0
    kinds = rng.integers(0, 3, size=240)
    rows = drawn[kinds].reshape(-1, 64) * 170 + rng.uniform(0, 80, size=(240, 64))
    return rows.astype(np.uint8), np.array(["bar", "pole", "ring"])[kinds]


@pytest.fixture(scope="session")
def images(shapes, tmp_path_factory):
    """A page with images and no labels."""
    yield from served(tmp_path_factory.mktemp("images"), shapes[0])


@pytest.fixture
def fresh(shapes, tmp_path):
    """A page with images and no labels, for one test."""
    yield from served(tmp_path, shapes[0])


@pytest.fixture(scope="session")
def known(shapes, tmp_path_factory):
    """A page with images and labels, one of them wrong."""
    folder = tmp_path_factory.mktemp("known")
    rows, names = shapes
    lines = [f"{row},{name}" for row, name in enumerate(names[:15])]
    lines[0] = f"0,{next(name for name in names if name != names[0])}"
    (folder / "answers.csv").write_text("\n".join(["row,label", *lines]) + "\n")
    yield from served(folder, rows)


def served(folder, rows):
    np.save(folder / "shapes.npy", rows)
    made = Served(folder, "shapes.npy")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def topics():
    """Number of the topic of each row of the table."""
    return np.random.default_rng(6).integers(0, 2, size=160)


@pytest.fixture(scope="session")
def table(topics, tmp_path_factory):
    """A page with texts, IDs and a column that all look like HTML, and no labels."""
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(7)
    with (folder / "mails.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["key", "body", "<b>size</b>"])
        for row, topic in enumerate(topics):
            words = rng.permutation(TOPICS[topic].split())
            out.writerow([f"{row}{IMAGE}", f"{SCRIPT} {' '.join(words)}", rng.normal(topic, 1)])
    made = Served(folder, "mails.csv", "--id-column", "key", "--text", "body")
    yield made
    made.stop()
