"""One bar in a notebook: drawn in its own place, seldom, and text is text."""

import logging
import sys
import time
import types

import pytest

from biglp import LowRankLabelPropagation
from biglp._core.bars import SECONDS_BETWEEN
from biglp._core.progress import LogProgress, shown_progress
from helpers import blobs


class Kernel:
    """What a kernel puts in the place of standard output."""

    __module__ = "ipykernel.iostream"

    def write(self, text):
        raise AssertionError(text)

    def isatty(self):
        return False


@pytest.fixture
def shown(monkeypatch):
    """What the cell shows, one page each time that it is drawn."""
    pages = []

    def draw(thing, display_id=True):
        pages.append(thing._repr_mimebundle_((), ())["text/html"])
        return types.SimpleNamespace(update=draw)

    module = types.ModuleType("IPython.display")
    module.display = draw
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return pages


def test_the_bar_says_where_the_run_is(shown, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Kernel())
    monkeypatch.setattr("biglp._core.bars.SECONDS_BETWEEN", 0.0)
    with shown_progress() as progress:
        with progress.task("converting <b>.csv", 10):
            assert "of the run" not in shown[-1]  # nobody knows yet
            assert "converting &lt;b&gt;.csv" in shown[-1]
        progress.expect({"Gram": 2.0, "labels": 2.0})
        with progress.task("Gram", 100) as task:
            task.advance(50)
            assert "Gram sums" in shown[-1]
            assert "of the run" in shown[-1]
            assert " left" in shown[-1]
        with progress.task("labels", 100):
            progress.say("a <message>")
            assert "a &lt;message&gt;" in shown[-1]
    assert "Gram: 50 rows in" in shown[-1]
    assert "of the run" not in shown[-1]
    assert "done in 0:00" in shown[-1]


def test_it_is_not_drawn_for_every_block(shown, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Kernel())
    with shown_progress() as progress, progress.task("Gram", 10_000) as task:
        drawn, began = len(shown), time.perf_counter()
        for _ in range(10_000):
            task.advance(1)
        assert len(shown) - drawn <= 1 + (time.perf_counter() - began) / SECONDS_BETWEEN


def test_verbose_draws_one_bar(shown, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Kernel())
    X, y, _ = blobs(n=200)
    LowRankLabelPropagation(n_landmarks=20, verbose=True).fit(X, y)
    for words in ("k-means: ", "Gram: ", "labels: ", "done in"):
        assert words in shown[-1]


def test_elsewhere_lines_are_logged():
    handlers = list(logging.getLogger("biglp").handlers)
    assert isinstance(shown_progress(), LogProgress)
    logging.getLogger("biglp").handlers[:] = handlers
