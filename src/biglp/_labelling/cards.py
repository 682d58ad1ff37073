"""Everything that the page shows, as JSON: the state of the session, and cards of rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from biglp._core.arrays import to_numpy
from biglp._labelling.learner import Fit
from biglp._labelling.session import Session
from biglp._labelling.view import SHORT, readable

MOST_CARDS = 20
PROBABILITIES, NEAREST = 6, 4
COMPARED = 2000
"""Labelled rows among which the nearest are looked for: the latest ones."""


class Cards:
    """Cards of rows of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._means: tuple[int, dict[str, dict[str, str]]] = (-1, {})
        self._numbers: tuple[list[str], np.ndarray] | None = None

    def next(self, n: int = 5) -> list[dict[str, Any]]:
        """The rows to label next."""
        rows = list(islice(self._session.loop.next_rows(), max(1, min(n, MOST_CARDS))))
        return self.cards([row for row, _ in rows], [why for _, why in rows])

    def card(self, row: int) -> dict[str, Any]:
        """One row."""
        return self.cards([row], ["A row that you chose."])[0]

    def cards(self, rows: Sequence[int], whys: Sequence[str]) -> list[dict[str, Any]]:
        """Cards of some rows."""
        if not rows:
            return []
        session = self._session
        fit, view, source = session.loop.fit, session.view, session.source
        means, nearest, positions = {}, self._nearest(rows), np.empty(0)
        if fit is not None:
            means = self._class_means(fit)
            positions = session.loop.learner.pool.positions_of(rows)
        cards = []
        for index, (row, entry) in enumerate(zip(rows, view.entries(rows), strict=True)):
            guesses: list[dict[str, Any]] = []
            if fit is not None:
                if 0 <= positions[index] < len(fit.probabilities):
                    shares = fit.probabilities[positions[index]]
                else:  # of a row outside the pool
                    shares = fit.probabilities_of(source.read(row, row + 1))[0]
                guesses = [
                    {"label": fit.classes[code], "probability": round(float(shares[code]), 4)}
                    for code in np.argsort(-shares, kind="stable")[:PROBABILITIES]
                ]
            cards.append(
                {
                    "row": row,
                    "id": _id(view.id_column, entry),
                    "why": whys[index],
                    "label": session.answers.label_of(row),
                    "guess": guesses[0] if guesses else None,
                    "probabilities": guesses,
                    "content": view.content(row, entry),
                    "values": [
                        {"name": name, "value": readable(value), "means": means.get(name, {})}
                        for name, value in view.values(row, entry)
                    ],
                    "shown": [{"name": name, "value": readable(entry[name])} for name in view.show],
                    "nearest": nearest[index],
                }
            )
        source.check_unchanged()  # a page may be open for days
        return cards

    def _nearest(self, rows: Sequence[int]) -> list[list[dict[str, Any]]]:
        """The nearest labelled rows of each row, in the features that the model compares."""
        session = self._session
        view, answers = session.view, session.answers
        pool, graph = session.loop.learner.pool, session.loop.graph
        labelled = list(answers.labelled())[-COMPARED:]
        positions = pool.positions_of(labelled)
        known = sorted((at, row) for at, row in zip(positions, labelled, strict=True) if at >= 0)
        if graph is None or not known or known[-1][0] >= graph.source.n_rows:
            return [[] for _ in rows]
        given = to_numpy(graph.source.take(np.array([position for position, _ in known])))
        wanted = sorted(set(rows))
        raw = session.source.take(np.array(wanted, dtype=np.int64))
        products = to_numpy(graph.source.prepared(raw)) @ given.T
        dense = products.toarray() if hasattr(products, "toarray") else np.asarray(products)
        norms = given.multiply(given).sum(axis=1) if hasattr(given, "multiply") else (given**2)
        norms = np.asarray(norms).reshape(len(known), -1).sum(axis=1)
        distances = norms[None, :] - 2.0 * dense
        nearest = []
        for row in rows:
            order = np.argsort(distances[wanted.index(row)], kind="stable")
            near = [known[index][1] for index in order if known[index][1] != row][:NEAREST]
            nearest.append(
                [
                    {
                        "row": other,
                        "id": _id(view.id_column, entry),
                        "label": answers.label_of(other) or "",
                        "content": view.content(other, entry, SHORT),
                    }
                    for other, entry in zip(near, view.entries(near), strict=True)
                ]
            )
        return nearest

    def _class_means(self, fit: Fit) -> dict[str, dict[str, str]]:
        """Means of the classes in each column of numbers, over the pool as it is labelled now."""
        view = self._session.view
        if view.kind != "table":
            return {}
        version, means = self._means
        if version == fit.version:
            return means
        if self._numbers is None:
            self._numbers = view.numbers(self._session.loop.learner.pool)
        names, numbers = self._numbers
        codes = fit.probabilities[: len(numbers)].argmax(axis=1)
        means = {name: {} for name in names}
        for code, label in enumerate(fit.classes):
            members = numbers[codes == code]
            known = np.isfinite(members)
            sums = np.where(known, members, 0.0).sum(axis=0, dtype=np.float64)
            for name, total, count in zip(names, sums, known.sum(axis=0), strict=True):
                if count:
                    means[name][label] = readable(float(total / count))
        self._means = fit.version, means
        return means


def state(session: Session) -> dict[str, Any]:
    """The state of a session."""
    answers, loop, view = session.answers, session.loop, session.view
    fit, counts, n_rows = loop.fit, answers.counts(), session.source.n_rows
    sizes: dict[str, int] = {}  # of each class in all data, as in the pool
    if fit is not None:
        codes = np.bincount(fit.probabilities.argmax(axis=1), minlength=len(fit.classes))
        shares = codes / len(fit.probabilities)
        sizes = {name: round(s * n_rows) for name, s in zip(fit.classes, shares, strict=True)}
    estimate = None if fit is None or fit.estimate is None else fit.estimate
    accuracy, next_gain = None, None
    if estimate is not None:
        low, high = estimate["interval"]
        accuracy = {"accuracy": estimate["accuracy"], "low": low, "high": high}
        more = estimate["next_labels"]
        gain, low, high = (round(100 * s, 1) for s in (more["gain"], *more["range"]))
        next_gain = (
            f"{more['labels']} more labels would add about {gain:g} "
            f"{'point' if gain == 1 else 'points'} ({low:g} to {high:g})."
        )
    return {
        "server": session.id,
        "version": session.version,
        "data": session.source.name,
        "rows": n_rows,
        "pool_rows": loop.learner.pool.n_rows,
        "kind": view.kind,
        "image": None if view.shape is None else view.shape.facts(),
        "classes": [
            {"name": name, "key": key, "labelled": counts[name], "found": sizes.get(name)}
            for name, key in list(answers.keys.items())
        ],
        "labelled": counts.total(),
        "skipped": len(answers.skipped),
        "can_undo": answers.can_undo,
        "labels_file": str(session.wanted.path),
        "model": {
            "state": loop.state,
            "labels": 0 if fit is None else fit.n_labels,
            "seconds": None if fit is None else round(fit.seconds, 3),
            "problem": loop.problem,
        },
        "estimate": accuracy,
        "history": list(loop.history),
        "next_gain": next_gain,
        "map_points": 0 if session.map.points is None else len(session.map.points.rows),
        "finish": session.finishing.state(),
    }


def _id(column: str | None, entry: dict[str, Any]) -> str | None:
    return None if column is None else readable(entry[column])
