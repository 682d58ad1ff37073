"""The server of the page: its answers to requests, which paths take and give JSON, and its run."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.arrays import to_numpy
from biglp._core.errors import (
    BigLPError,
    BigLPWarning,
    LabelError,
    MissingExtraError,
    ParameterError,
)

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles
except ImportError as error:
    raise MissingExtraError(
        "biglp label needs Starlette and uvicorn, which are not installed; install them with: "
        'pip install "biglp[label]"'
    ) from error

from biglp._labelling.learner import Fit
from biglp._labelling.server import Address, Guard, kept_token
from biglp._labelling.session import Session, Wanted
from biglp._labelling.view import SHORT, readable

NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine for itself."""
SWITCH_SECONDS = 0.001
"""How long Python lets a fit go on while a request waits."""
STATIC = Path(__file__).parent / "page"
HEARTBEAT = 10.0
"""Seconds between signs of life on the stream of events."""
MOST_ANSWER_LETTERS = 100
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


class Page:
    """The page of a session."""

    def __init__(self, session: Session) -> None:
        self.session, self.cards = session, Cards(session)
        self.closing = asyncio.Event()

    def app(self) -> Starlette:
        """The ASGI application, without its guard."""
        get = {
            "/": self.index,
            "/api/state": self.state,
            "/api/next": self.next,
            "/api/row/{row:int}": self.row,
            "/api/image/{row:int}": self.image,
            "/api/map/points": self.map_points,
            "/api/map/rows": self.map_rows,
            "/api/map/colours": self.map_colours,
            "/api/map/labelled": self.map_labelled,
            "/api/doubts": self.doubts,
            "/api/export": self.export,
            "/api/events": self.events,
        }
        post = {
            "/api/answer": self.answer,
            "/api/answers": self.answer,
            "/api/skip": self.skip,
            "/api/undo": self.undo,
            "/api/classes": self.classes,
            "/api/finish": self.finish,
        }
        routes = [Route(path, answer, methods=["GET"]) for path, answer in get.items()]
        routes += [Route(path, _posted(answer), methods=["POST"]) for path, answer in post.items()]

        async def refused(request: Request, error: Exception) -> Response:
            text = str(error)
            if not isinstance(error, (BigLPError, OSError)):
                text = f"unexpected {type(error).__name__}; see the terminal of biglp label."
            return _error(400 if isinstance(error, (ParameterError, LabelError)) else 500, text)

        return Starlette(
            routes=[*routes, Mount("/static", _Static(directory=STATIC))],
            exception_handlers=dict.fromkeys((BigLPError, OSError, Exception), refused),
        )

    def index(self, request: Request) -> Response:
        """The page itself."""
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    def state(self, request: Request) -> Response:
        """The state of the session."""
        session = self.session
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
        state = {
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
        return JSONResponse(state)

    def next(self, request: Request) -> Response:
        """Rows to label next."""
        n = request.query_params.get("n", "5")
        return JSONResponse({"cards": self.cards.next(int(n) if n.isdecimal() else 5)})

    def row(self, request: Request) -> Response:
        """One row."""
        row = self.session.check_row(request.path_params["row"])
        return JSONResponse(self.cards.card(row))

    def image(self, request: Request) -> Response:
        """The picture of a row."""
        row = self.session.check_row(request.path_params["row"])
        image = self.session.view.image(row)
        if image is None:
            return _error(404, f"row {row:,} has no picture.")
        content, kind = image
        headers = {"cache-control": "private, max-age=3600"}
        if isinstance(content, Path):
            return FileResponse(content, media_type=kind, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    def map_points(self, request: Request) -> Response:
        """Positions of the points of the map."""
        points = self.session.map.points
        positions = np.empty((0, 2)) if points is None else points.positions
        return _octets(positions.astype("<f4"), {"x-points": str(len(positions))})

    def map_rows(self, request: Request) -> Response:
        """Row numbers of the points."""
        points = self.session.map.points
        return _octets((np.empty(0) if points is None else points.rows).astype("<i8"))

    def map_colours(self, request: Request) -> Response:
        """Class and uncertainty of each point."""
        points, version = self.session.map.points, self.session.version
        fit, classes = self.session.loop.fit, self.session.answers.classes
        colours = np.empty((0, 2), np.uint8) if points is None else points.colours(fit, classes)
        return _octets(colours, {"x-version": str(version)})

    def map_labelled(self, request: Request) -> Response:
        """Points that have a label, and their classes."""
        points, answers = self.session.map.points, self.session.answers
        if points is None:
            return JSONResponse({"points": [], "classes": []})
        labels, codes = answers.labelled(), {name: i for i, name in enumerate(answers.classes)}
        numbers = points.numbers_of(np.fromiter(labels, dtype=np.int64, count=len(labels)))
        shown = [
            (number, codes[label])
            for number, label in zip(numbers.tolist(), labels.values(), strict=True)
            if number >= 0 and label in codes
        ]
        return JSONResponse(
            {"points": [number for number, _ in shown], "classes": [code for _, code in shown]}
        )

    def doubts(self, request: Request) -> Response:
        """Given labels in doubt."""
        fit, answers, view = self.session.loop.fit, self.session.answers, self.session.view
        doubts = [] if fit is None else fit.doubts
        # What has been corrected since is in doubt no more.
        doubts = [doubt for doubt in doubts if answers.label_of(doubt["row"]) == doubt["label"]]
        named = view.id_column is not None
        ids = view.keys([doubt["row"] for doubt in doubts]) if named else [None] * len(doubts)
        rows = [{**doubt, "id": key} for doubt, key in zip(doubts, ids, strict=True)]
        return JSONResponse({"rows": rows})

    def export(self, request: Request) -> Response:
        """All labels, as a file."""
        labels, view = dict(self.session.answers.all_labels()), self.session.view
        rows = list(labels)
        columns = ["row", "label"] if view.id_column is None else ["row", view.id_column, "label"]
        keys = [[]] * len(rows) if view.id_column is None else [[key] for key in view.keys(rows)]
        lines = [[row, *key, labels[row]] for row, key in zip(rows, keys, strict=True)]
        kind = request.query_params.get("format", "csv")
        if kind not in ("csv", "jsonl"):
            raise ParameterError(f"format={kind!r} is not known; use one of csv, jsonl.")
        if kind == "jsonl":
            objects = [dict(zip(columns, line, strict=True)) for line in lines]
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in objects)
            media = "application/x-ndjson"
        else:
            file = io.StringIO(newline="")
            csv.writer(file, lineterminator="\n").writerows([columns, *lines])
            text, media = file.getvalue(), "text/csv"
        headers = {"content-disposition": f'attachment; filename="labels.{kind}"'}
        return Response(text.encode(), media_type=media, headers=headers)

    def answer(self, given: dict[str, Any]) -> dict[str, Any]:
        """Label a row, or many."""
        rows = given.get("rows", [given.get("row")])
        if not isinstance(rows, list):
            raise ParameterError("rows must be a list of row numbers.")
        self.session.label(rows, given.get("label", ""), _uuid(given))
        return self._saved()

    def skip(self, given: dict[str, Any]) -> dict[str, Any]:
        """Put a row aside."""
        self.session.skip(given.get("row"), _uuid(given))  # type: ignore[arg-type]
        return self._saved()

    def undo(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take the last step back."""
        undone = self.session.undo(_uuid(given))
        return {"undone": undone, **self._saved()}

    def classes(self, given: dict[str, Any]) -> dict[str, Any]:
        """Add or rename a class."""
        if "add" in given:
            self.session.add_class(given["add"])
        else:
            self.session.rename(str(given.get("rename")), given.get("to", ""))
        return {"version": self.session.version}

    def finish(self, given: dict[str, Any]) -> dict[str, Any]:
        """Fit all rows."""
        if len(self.session.answers.counts()) < 2:
            raise LabelError("all rows can be labelled when rows of two classes have labels.")
        self.session.finishing.start()
        return {"version": self.session.version}

    def _saved(self) -> dict[str, Any]:
        return {"saved": True, "version": self.session.version, "next": self.cards.next()}

    async def events(self, request: Request) -> Response:
        """A line for every change, and a sign of life in between."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(news.set)

        async def changes() -> AsyncIterator[str]:
            unlisten = self.session.listen(tell)
            try:
                while not self.closing.is_set():
                    news.clear()
                    state = {"version": self.session.version, "server": self.session.id}
                    yield f"data: {json.dumps(state)}\n\n"
                    try:
                        await asyncio.wait_for(news.wait(), HEARTBEAT)
                    except TimeoutError:
                        yield ": here\n\n"
            finally:
                unlisten()

        headers = {"cache-control": "no-store"}
        return StreamingResponse(changes(), media_type="text/event-stream", headers=headers)


class _Static(StaticFiles):
    """Files of the page, asked for again each time so that an update is seen."""

    def file_response(self, *args: Any, **more: Any) -> Response:
        response = super().file_response(*args, **more)
        response.headers["cache-control"] = "no-cache"
        return response


def _posted(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Read the JSON of a request, and work on it in a thread: it waits for the disk."""

    async def respond(request: Request) -> Response:
        try:
            given = json.loads(await request.body())
        except ValueError:
            return _error(400, "the request is no JSON.")
        if not isinstance(given, dict):
            return _error(400, "the request must be a JSON object.")
        return JSONResponse(await run_in_threadpool(answer, given))

    return respond


def _octets(array: np.ndarray, headers: dict[str, str] | None = None) -> Response:
    """Numbers as they lie in memory."""
    kind = "application/octet-stream"
    return Response(array.tobytes(), media_type=kind, headers=headers)


def _uuid(given: dict[str, Any]) -> str:
    answer = given.get("answer")
    if not isinstance(answer, str) or not 0 < len(answer) <= MOST_ANSWER_LETTERS:
        raise ParameterError("answer must name this answer, as text, so that it counts once.")
    return answer


def _id(column: str | None, entry: dict[str, Any]) -> str | None:
    return None if column is None else readable(entry[column])


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status_code=status)


def serve(
    wanted: Wanted, address: Address, began: Callable[[str], None], allowed: tuple[str, ...] = ()
) -> int:
    """Serve the page until the process is asked to end; return how many labels there are then.

    ``began`` is told the URL when the page can be opened; ``allowed`` are further hosts that the
    page may be asked under, for a reverse proxy.
    """
    address.check()
    with address.listen() as listening:
        session = Session(wanted)
        try:
            page, token = Page(session), kept_token(wanted.path)
            port, host = listening.getsockname()[1], address.host
            hosts = (*(f"{name}:{port}" for name in (*NAMES, host)), *allowed)

            class Server(uvicorn.Server):
                """Ends streams of events before it waits for requests to end."""

                async def startup(self, sockets: Any = None) -> None:
                    await super().startup(sockets)
                    session.start()
                    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
                    began(f"http://{shown}:{port}/?token={token}")

                async def shutdown(self, sockets: Any = None) -> None:
                    page.closing.set()
                    session.changed()
                    await super().shutdown(sockets)

            config = uvicorn.Config(
                Guard(page.app(), token, hosts),
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=3,
            )
            interval = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_SECONDS)
            try:
                with warnings.catch_warnings():  # the page says what there is to say
                    warnings.simplefilter("ignore", BigLPWarning)
                    Server(config).run(sockets=[listening])
            finally:
                sys.setswitchinterval(interval)
        except KeyboardInterrupt:  # how a server is ended: every answer is on disk
            pass
        finally:
            session.close()
    return len(session.answers.own)
