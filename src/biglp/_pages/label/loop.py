"""The thread that keeps model and suggestions up to date, so that no answer waits for a fit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from biglp._core.errors import BigLPError
from biglp._graph.graph import Graph
from biglp._pages.label.answers import Answers
from biglp._pages.label.learner import Fit, Learner

logger = logging.getLogger("biglp")

LONGEST_STEP = 10.0
"""Seconds that the end of the server waits for a step; nothing is lost with it."""
WHY_FIRST = "A typical row: many others are like it."
WHY_RANDOM = "A row drawn at random, while better ones are being looked for."
WHY_SUGGESTED = "The model is in doubt here, and many rows are like this one."
WHY_SKIPPED = "You skipped this row; nothing else is left."


class Loop:
    """Builds the graph, then fits whenever labels have changed.

    Parameters
    ----------
    learner : Learner
    answers : Answers
    changed : callable
        Called when there is something new.

    Attributes
    ----------
    fit : Fit or None
        The last fit.
    state : {"none", "fitting", "ready"}
    history : list of dict
        Estimated accuracy over the number of labels.
    problem : str or None
        What went wrong in the last fit.
    """

    def __init__(self, learner: Learner, answers: Answers, changed: Callable[[], None]) -> None:
        self.learner, self._answers, self._changed = learner, answers, changed
        self.fit: Fit | None = None
        self.state = "none"
        self.history: list[dict[str, float]] = []
        self.problem: str | None = None
        self.graph: Graph | None = None
        self.after_graph: list[Callable[[], None]] = []
        self._first: np.ndarray | None = None
        rng = np.random.default_rng(learner.seed)
        self._random = learner.pool.rows[rng.permutation(learner.pool.n_rows)]
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="biglp-loop", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Say that labels have changed."""
        self._wake.set()

    def stop(self) -> None:
        """End, after the step that is being taken."""
        self._end.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(LONGEST_STEP)

    def renamed(self, name: str, to: str) -> None:
        """Take over the new name of a class at once; the model is the same."""
        fit = self.fit
        if fit is not None:
            classes = [to if each == name else each for each in fit.classes]
            self.fit = replace(fit, classes=classes)
        self.wake()

    def next_rows(self) -> Iterator[tuple[int, str]]:
        """Rows to label next and why, the most wanted first; labelled rows are left out."""
        answers, fit, seen = self._answers, self.fit, set[int]()
        first = [] if self._first is None else self._first.tolist()
        suggested = [] if fit is None else fit.suggested.tolist()
        queues = ((first, WHY_FIRST), (suggested, WHY_SUGGESTED), (self._random, WHY_RANDOM))
        for rows, why in queues:
            for row in map(int, rows):
                if row not in seen and row not in answers.skipped and not answers.label_of(row):
                    seen.add(row)
                    yield row, why
        for row in list(answers.skipped):
            if not answers.label_of(row):
                yield row, WHY_SKIPPED

    def _run(self) -> None:
        try:
            self._first = self.learner.prepare()
            self.graph = self.learner.graph
            self._changed()
            self.learner.sum()
        except Exception as error:
            self._failed(error)
            return
        for follow in self.after_graph:
            follow()
        self._changed()
        while True:
            self._wake.clear()
            if self._end.is_set():
                return
            try:
                self._fit_if_needed()
                self._complete()
            except Exception as error:
                self._failed(error)
            self._wake.wait()

    def _fit_if_needed(self) -> None:
        version, labels = self._answers.version, self._answers.labelled()
        if self.fit is not None and self.fit.version == version:
            return
        if len(set(labels.values())) < 2:
            if self.fit is not None or self.state != "none":
                self.fit, self.state = None, "none"
                self._changed()
            return
        self.state = "fitting"
        self._changed()
        self.fit = self.learner.fit(labels, version, self.fit)
        self.graph, self.problem = self.fit.graph, None
        self._note(self.fit)
        self.state = "ready" if self._answers.version == version else "fitting"
        self._changed()
        if self.state == "fitting":
            self._wake.set()

    def _complete(self) -> None:
        """Ask the rows that the last fit has not asked, until there are new labels."""
        fit = self.fit
        while fit is not None and fit.stale and not self._wake.is_set():
            fit = self.learner.complete(fit)
            if not fit.stale:
                self.fit = fit
                self._changed()

    def _note(self, fit: Fit) -> None:
        """Keep the estimate over the number of labels; of several of a number, the last."""
        if fit.estimate is None:
            return
        low, high = fit.estimate["interval"]
        point = {"labels": fit.n_labels, "accuracy": fit.estimate["accuracy"]}
        kept = [each for each in self.history if each["labels"] < fit.n_labels]
        self.history = [*kept, {**point, "low": low, "high": high}]

    def _failed(self, error: Exception) -> None:
        known = isinstance(error, BigLPError)
        self.problem = str(error) if known else f"unexpected {type(error).__name__}: {error}"
        if not known:
            logger.exception("the model of the labelling page could not be fitted")
        self.state = "none" if self.fit is None else "ready"
        self._changed()
