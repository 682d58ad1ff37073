"""How far a run is, and how a notebook shows it."""

import sys
import types

import pytest

from biglp import LowRankLabelPropagation
from biglp._core import WholeRun, shown_progress
from helpers import blobs

# --------------------------------------------------------------------------------------------------
# How far a run is: time left that means the end, a share that never falls, on our own clock.


class Clock:
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


# --------------------------------------------------------------------------------------------------
# One bar in a notebook: drawn in its own place, seldom, and text is text.


class Kernel:
    __module__ = "ipykernel.iostream"

    def write(self, text):
        raise AssertionError(text)

    def isatty(self):
        return False


@pytest.fixture
def shown(monkeypatch):
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
    monkeypatch.setattr("biglp._core.progress.SECONDS_BETWEEN", 0.0)
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


def test_verbose_draws_one_bar(shown, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Kernel())
    X, y, _ = blobs(n=200)
    LowRankLabelPropagation(n_landmarks=20, verbose=True).fit(X, y)
    for words in ("k-means: ", "Gram: ", "labels: ", "done in"):
        assert words in shown[-1]
