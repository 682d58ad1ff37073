"""One bar in a notebook: drawn in its own place, seldom, and text is text."""

import logging
import re
import sys
import types

import pytest

from biglp import LowRankLabelPropagation
from biglp._core.notebook import SECONDS_BETWEEN, NotebookBar, shown_progress
from biglp._core.progress import LogProgress
from helpers import blobs


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def shown():
    return []


@pytest.fixture
def bar(shown):
    clock = Clock()
    made = NotebookBar(shown.append, clock)
    made.clock = clock
    return made


def test_the_bar_says_where_the_run_is(bar, shown):
    with bar.task("converting <b>.csv", 10):
        assert "value=" not in shown[-1]  # nobody knows yet
        assert "converting &lt;b&gt;.csv" in shown[-1]
    bar.expect({"Gram": 2.0, "labels": 2.0})
    with bar.task("Gram", 100) as task:
        bar.clock.now += 1
        task.advance(50)
        assert re.search(r'value="0\.\d+"', shown[-1])
        assert "biglp: Gram, 0:05 left" in shown[-1]
    with bar.task("labels", 100):
        bar.say("a <message>")
        assert "<div>a &lt;message&gt;</div>" in shown[-1]
    bar.close()
    assert 'value="1.000"' in shown[-1]
    assert "done in 0:01" in shown[-1]


def test_it_is_not_drawn_for_every_block(bar, shown):
    bar.expect({"Gram": 1.0})
    with bar.task("Gram", 1000) as task:
        for _ in range(1000):
            bar.clock.now += SECONDS_BETWEEN / 100
            task.advance(1)
    assert len(shown) <= 12


class Kernel:
    """What a kernel puts in the place of standard output."""

    __module__ = "ipykernel.iostream"

    def write(self, text):
        raise AssertionError(text)

    def isatty(self):
        return False


def test_verbose_draws_one_bar_in_a_notebook(monkeypatch):
    displayed, updated = [], []
    handle = types.SimpleNamespace(update=updated.append)
    module = types.ModuleType("IPython.display")
    module.HTML = str
    module.display = lambda html, display_id: displayed.append(html) or handle
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(sys, "stdout", Kernel())
    X, y, _ = blobs(n=200)
    LowRankLabelPropagation(n_landmarks=20, verbose=True).fit(X, y)
    assert len(displayed) == 1
    assert "done in" in updated[-1]


def test_elsewhere_lines_are_logged(monkeypatch):
    handlers = list(logging.getLogger("biglp").handlers)
    assert isinstance(shown_progress(), LogProgress)
    monkeypatch.setattr(sys, "stdout", Kernel())
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    assert isinstance(shown_progress(), LogProgress)
    logging.getLogger("biglp").handlers[:] = handlers
