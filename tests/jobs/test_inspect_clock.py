"""From processor time to clock time."""

from __future__ import annotations

import time

import pytest

from biglp._jobs.inspect.clock import Pace, Spent


@pytest.mark.parametrize(
    ("alone", "sweeps", "expected"),
    [
        (Spent(), Spent(), 1.0 + 4.0 / 2),  # nothing measured: threads share the sweeps
        (Spent(1.0, 1.0), Spent(1.0, 0.6), 1.0 + 4.0 * 0.6),
        (Spent(1.0, 3.0), Spent(1.0, 2.0), 3.0 + 4.0 * 2.0),  # others are at work
        (Spent(1.0, 3.0), Spent(), 3.0 + 4.0 * 3.0 / 2),
        (Spent(1.0, 0.5), Spent(1.0, 0.1), 1.0 + 4.0 / 2),  # no more threads than there are
    ],
)
def test_first_hour_8_clock_time_of_steps(alone, sweeps, expected):
    pace = Pace(2, alone, sweeps)
    assert pace.seconds({"prepare": 1.0, "Gram": 4.0}) == pytest.approx(expected)


def test_first_hour_8_waiting_is_no_processor_time():
    pace, steps = Pace(), {}
    with pace.timed("prepare", steps):
        time.sleep(0.05)
    assert steps["prepare"] < 0.04
    assert pace.alone.clock >= 0.05
    assert pace.sweeps == Spent()
