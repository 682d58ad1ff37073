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
    """Cards of rows.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._means: tuple[int, dict[str, dict[str, str]]] = (-1, {})
        self._numbers: tuple[list[str], np.ndarray] | None = None

    def next(self, n: int = 5) -> list[dict[str, Any]]:
        """The rows to label next."""
        found = list(islice(self._session.loop.next_rows(), max(1, min(n, MOST_CARDS))))
        return self.cards([row for row, _ in found], [why for _, why in found])

    def card(self, row: int) -> dict[str, Any]:
        """One row."""
        return self.cards([row], ["A row that you chose."])[0]

    def cards(self, rows: Sequence[int], whys: Sequence[str]) -> list[dict[str, Any]]:
        """Cards of some rows."""
        if not rows:
            return []
        session = self._session
        fit, view = session.loop.fit, session.view
        means = self._class_means(fit)
        shares = self._shares(fit, rows)
        nearest = self._nearest(rows)
        found = []
        for place, (row, entry) in enumerate(zip(rows, view.entries(rows), strict=True)):
            said = [] if fit is None else ranked(fit.classes, shares[place])
            found.append(
                {
                    "row": row,
                    "id": _id(view.id_column, entry),
                    "why": whys[place],
                    "label": session.answers.label_of(row),
                    "guess": said[0] if said else None,
                    "probabilities": said,
                    "content": view.content(row, entry),
                    "values": [
                        {"name": name, "value": readable(value), "means": means.get(name, {})}
                        for name, value in view.values(row, entry)
                    ],
                    "shown": [{"name": name, "value": readable(entry[name])} for name in view.show],
                    "nearest": nearest[place],
                }
            )
        session.source.check_unchanged()  # a page may be open for days
        return found

    def _shares(self, fit: Fit | None, rows: Sequence[int]) -> np.ndarray:
        """Class probabilities of rows, in the pool or not."""
        if fit is None:
            return np.empty((len(rows), 0))
        pool, found = self._session.loop.learner.pool, np.empty((len(rows), len(fit.classes)))
        for number, place in enumerate(pool.places_of(rows)):
            if 0 <= place < len(fit.probabilities):
                found[number] = fit.probabilities[place]
            else:
                stored = self._session.source.read(rows[number], rows[number] + 1)
                found[number] = fit.shares_of(stored)[0]
        return found

    def _nearest(self, rows: Sequence[int]) -> list[list[dict[str, Any]]]:
        """The nearest labelled rows of each row, in the features that the model compares."""
        session = self._session
        pool, graph = session.loop.learner.pool, session.loop.graph
        labelled = list(session.answers.labelled())[-COMPARED:]
        places = pool.places_of(labelled)
        known = [(place, row) for place, row in zip(places, labelled, strict=True) if place >= 0]
        if graph is None or not known or max(known)[0] >= graph.source.n_rows:
            return [[] for _ in rows]
        known.sort()
        given = to_numpy(graph.source.take(np.array([place for place, _ in known])))
        wanted = sorted(set(rows))
        raw = session.source.take(np.array(wanted, dtype=np.int64))
        asked = to_numpy(graph.source.prepared(raw))
        products = asked @ given.T
        dense = products.toarray() if hasattr(products, "toarray") else np.asarray(products)
        norms = given.multiply(given).sum(axis=1) if hasattr(given, "multiply") else (given**2)
        norms = np.asarray(norms).reshape(len(known), -1).sum(axis=1)
        distances = norms[None, :] - 2.0 * dense
        found = []
        for row in rows:
            order = np.argsort(distances[wanted.index(row)], kind="stable")
            near = [known[place][1] for place in order if known[place][1] != row][:NEAREST]
            found.append(self._beside(near))
        return found

    def _beside(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Labelled rows that are shown beside another."""
        view, answers = self._session.view, self._session.answers
        return [
            {
                "row": row,
                "id": _id(view.id_column, entry),
                "label": answers.label_of(row) or "",
                "content": view.content(row, entry, SHORT),
            }
            for row, entry in zip(rows, view.entries(rows), strict=True)
        ]

    def _class_means(self, fit: Fit | None) -> dict[str, dict[str, str]]:
        """Means of the classes in each column of numbers, over the pool as it is labelled now."""
        view = self._session.view
        if fit is None or view.kind != "table":
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


def ranked(classes: Sequence[str], shares: np.ndarray) -> list[dict[str, Any]]:
    """The likeliest classes and their probabilities."""
    order = np.argsort(-shares, kind="stable")[:PROBABILITIES]
    return [
        {"label": classes[code], "probability": round(float(shares[code]), 4)} for code in order
    ]


def state(session: Session) -> dict[str, Any]:
    """The state of a session."""
    answers, loop, view = session.answers, session.loop, session.view
    fit, counts = loop.fit, answers.counts()
    found = {} if fit is None else found_rows(fit, session.source.n_rows)
    estimate = None if fit is None or fit.estimate is None else fit.estimate
    return {
        "server": session.id,
        "version": session.version,
        "data": session.source.name,
        "rows": session.source.n_rows,
        "pool_rows": loop.learner.pool.n_rows,
        "kind": view.kind,
        "image": None if view.shape is None else view.shape.facts(),
        "classes": [
            {
                "name": name,
                "key": key,
                "labelled": counts[name],
                "found": found.get(name) if fit is not None else None,
            }
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
        "estimate": None
        if estimate is None
        else {
            "accuracy": estimate["accuracy"],
            "low": estimate["interval"][0],
            "high": estimate["interval"][1],
        },
        "history": list(loop.history),
        "next_gain": None if estimate is None else next_gain(estimate["next_labels"]),
        "map_points": 0 if session.map.points is None else len(session.map.points.rows),
        "finish": session.finishing.state(),
    }


def found_rows(fit: Fit, n_rows: int) -> dict[str, int]:
    """Rows of each class in all data, as their shares in the pool are."""
    codes = np.bincount(fit.probabilities.argmax(axis=1), minlength=len(fit.classes))
    shares = codes / len(fit.probabilities)
    return {name: round(share * n_rows) for name, share in zip(fit.classes, shares, strict=True)}


def next_gain(following: dict[str, Any]) -> str:
    """What more labels would bring."""
    gain = round(100 * following["gain"], 1)
    low, high = (round(100 * share, 1) for share in following["range"])
    return (
        f"{following['labels']} more labels would add about {gain:g} "
        f"{'point' if gain == 1 else 'points'} ({low:g} to {high:g})."
    )


def _id(column: str | None, entry: dict[str, Any]) -> str | None:
    return None if column is None else readable(entry[column])
