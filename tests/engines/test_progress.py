"""How far a run is, and how a notebook shows it."""

import logging
import sys
import types

import pytest

from biglp import LowRankLabelPropagation
from biglp._core import LogProgress, WholeRun, shown_progress
from helpers import blobs

# --------------------------------------------------------------------------------------------------
# How far a run is: time left that means the end, a share that never falls, on our own clock.


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def course(clock):
    made = WholeRun(clock)
    made.expect({"report": 1.0})
    made.expect({"k-means": 2.0, "Gram": 4.0, "learning": 5.0, "labels": 4.0})
    return made


SLOWER, ALMOST = 2.0, 0.99


def test_a_machine_as_guessed(course, clock):
    assert course.left() == SLOWER * 16.0
    course.begin("k-means", 100)
    clock.wait(2)
    course.begin("Gram", 100)
    clock.wait(2)
    course.advance(50)
    assert course.left() == pytest.approx(2 + 5 + 4 + 1)
    assert course.share() == pytest.approx(4 / 16)


def test_nothing_stands_at_its_end_before_the_end(course, clock):
    shares = []
    for step, seconds in {
        "k-means": 1,
        "Gram": 1,
        "learning": 60,
        "labels": 1,
        "report": 1,
    }.items():
        course.begin(step)
        for _ in range(20):
            clock.wait(seconds / 20)
            shares.append(course.share())
        course.end()
    assert shares == sorted(shares)
    assert shares[-1] <= ALMOST
    # A step that takes twelve times as long as was guessed: the bar is slow, but does not stand.
    long = shares[40:60]
    assert len(set(long)) > 5
    course.finish()
    assert (course.share(), course.left()) == (1.0, 0.0)


def test_runs_that_are_resumed_or_do_what_nobody_expected(course, clock):
    course.begin("converting rows.csv", 100)
    clock.wait(10)
    course.end()
    assert course.left() == SLOWER * 16.0  # it only took time
    assert course.share() == pytest.approx(10 / (10 + SLOWER * 16))
    course.begin("learning")  # what came before is left out
    assert course.left() == SLOWER * (5 + 4 + 1)
    later = WholeRun(clock)
    clock.wait(50)
    later.expect({"labels": 10.0})
    assert later.share() == 0.0  # time before anything was expected does not count
    unknown = WholeRun(clock)
    assert unknown.share() is None
    unknown.begin("reading", 100)  # the share is that of the step
    unknown.advance(30)
    clock.wait(3)
    assert unknown.share() == 0.3
    assert unknown.left() == pytest.approx(7)


# --------------------------------------------------------------------------------------------------
# One bar in a notebook: drawn in its own place, seldom, and text is text.


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
    monkeypatch.setattr("biglp._core.bars.SECONDS_BETWEEN", 1e6)
    with shown_progress() as progress, progress.task("Gram", 10_000) as task:
        drawn = len(shown)
        for _ in range(10_000):
            task.advance(1)
        assert len(shown) - drawn <= 1


def test_verbose_draws_one_bar(shown, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Kernel())
    X, y, _ = blobs(n=200)
    LowRankLabelPropagation(n_landmarks=20, verbose=True).fit(X, y)
    for words in ("k-means: ", "Gram: ", "labels: ", "done in"):
        assert words in shown[-1]


def test_elsewhere_lines_are_logged(monkeypatch):
    monkeypatch.setattr(logging.getLogger("biglp"), "handlers", [])
    assert isinstance(shown_progress(), LogProgress)
