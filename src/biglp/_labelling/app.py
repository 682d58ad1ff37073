"""The server's answers to the page's requests: paths, and what they take and give."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from biglp._core.errors import BigLPError, LabelError, ParameterError
from biglp._labelling.cards import Cards, state
from biglp._labelling.session import Session

STATIC = Path(__file__).parent / "page"
HEARTBEAT = 10.0
"""Seconds between signs of life on the stream of events."""
MOST_ANSWER_LETTERS = 100


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
            "/api/answers": self.answers,
            "/api/skip": self.skip,
            "/api/undo": self.undo,
            "/api/classes": self.classes,
            "/api/finish": self.finish,
        }
        routes = [Route(path, answer, methods=["GET"]) for path, answer in get.items()]
        routes += [Route(path, _posted(answer), methods=["POST"]) for path, answer in post.items()]

        async def refused(request: Request, error: Exception) -> Response:
            return _error(
                400 if isinstance(error, (ParameterError, LabelError)) else 500, str(error)
            )

        async def unexpected(request: Request, error: Exception) -> Response:
            text = f"unexpected {type(error).__name__}; see the terminal of biglp label."
            return _error(500, text)

        return Starlette(
            routes=[*routes, Mount("/static", _Static(directory=STATIC))],
            exception_handlers={BigLPError: refused, OSError: refused, Exception: unexpected},
        )

    def index(self, request: Request) -> Response:
        """The page itself."""
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    def state(self, request: Request) -> Response:
        """The state of the session."""
        return JSONResponse(state(self.session))

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
        """Label a row."""
        self.session.label([given.get("row")], given.get("label", ""), _uuid(given))  # type: ignore[list-item]
        return self._saved()

    def answers(self, given: dict[str, Any]) -> dict[str, Any]:
        """Label many rows."""
        rows = given.get("rows")
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


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status_code=status)
