"""How far a whole run is, and when it will have ended.

Before a run it is guessed how many seconds each of its steps takes. The guesses are rough, but how
much slower or faster this machine is shows as steps end: what is left is

    the rest of this step + f · the guesses of those to come,    f = taken / guessed so far.

The rest of a step whose rows are counted follows from its own speed. The share that is done is the
time so far, divided by that and the time left, so that both say the same; it never falls, and is
not 1 before the run has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

LEAST_DONE = 0.02
"""Share of a step's rows from which on its own speed tells how long it takes."""
OVERDUE = 0.2
"""Of a step that takes longer than was guessed, this share of its time so far may be to come."""
SLOWER = 2.0
"""f before a step has ended: a bar that stands still later is worse than one that is slow first."""
ALMOST = 0.99
"""Most that is done before the end."""


class Course:
    """Follows the steps of a run.

    Parameters
    ----------
    clock : callable
        Seconds.

    Attributes
    ----------
    known : bool
        Whether it is known what the run will do; what is said of it is that of the step otherwise.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self._expected: dict[str, float] = {}
        self._taken = self._guessed = 0.0
        self._step: str | None = None
        self._step_began = 0.0
        self._total = self._done = 0
        self._repeated = False
        self._share = 0.0
        self._ended = self.known = False

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say which steps are to come, in their order, and guess how long they take.

        Said again, these come before those: a job knows what it does last before the fit within it
        knows what it does.
        """
        if not self._expected:  # what came before, such as reading a file, is no part of the course
            self._began = self._clock()
        self.known = True
        self._expected = {**seconds, **self._expected}

    def begin(self, step: str, total: int = 0) -> None:
        """Say that a step begins, of so many rows where they are counted.

        One that begins again is one step of several sweeps, nobody knows how many.
        """
        if step == self._step:
            self._repeated = True
        else:
            self.end()
            self._step, self._step_began, self._repeated = step, self._clock(), False
            if step in self._expected:  # a run that is resumed leaves out what came before
                order = list(self._expected)
                self._expected = {name: self._expected[name] for name in order[order.index(step) :]}
        self._total, self._done = total, 0

    def advance(self, rows: int) -> None:
        """Say that so many more rows of the step are done."""
        self._done += rows

    def end(self) -> None:
        """Say that the step is over."""
        guessed = self._expected.get(self._step or "")
        if guessed is not None:
            self._taken += self._clock() - self._step_began
            self._guessed += guessed
            del self._expected[self._step or ""]
        self._step = None

    def finish(self) -> None:
        """Say that the run is over."""
        self._ended = True

    def left(self) -> float:
        """Guess how many seconds are left."""
        if self._ended:
            return 0.0
        factor = self._taken / self._guessed if self._guessed > 0 else SLOWER
        # A copy: a bar is drawn in a thread of its own.
        later = sum(guess for step, guess in list(self._expected.items()) if step != self._step)
        return self._rest(factor) + factor * later

    def share(self) -> float | None:
        """Share of the run, or of the step, that is done, from 0 to 1; None where nobody knows."""
        if self._ended:
            return 1.0
        if not self.known:
            counted = self._total and not self._repeated
            return min(self._done / self._total, 1.0) if counted else None
        so_far, left = self._clock() - self._began, self.left()
        if so_far + left > 0:
            self._share = max(self._share, min(so_far / (so_far + left), ALMOST))
        return self._share

    def _rest(self, factor: float) -> float:
        """Guess how many seconds of this step are left."""
        if self._step is None:
            return 0.0
        taken = self._clock() - self._step_began
        if self._total and not self._repeated and self._done >= LEAST_DONE * self._total:
            return taken * max(self._total - self._done, 0) / self._done
        guess = factor * self._expected.get(self._step, 0.0)
        return max(guess - taken, OVERDUE * taken)


def clock_time(seconds: float) -> str:
    """Write a time as clocks do: 0:05, 12:40, 1:02:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
