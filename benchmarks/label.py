"""A labelling session as a person would have it, through the server's own requests.

``biglp label`` runs as a process of its own. A simulated person asks for cards, takes a while to
look at each (--pace), and answers as the truth has it. Measured are the time from an answer to the
next card with its picture, the time of a fit, the memory of the server, and how many rows are right
at the end.

Run with:  BIGLP_DATA=folder python benchmarks/label.py mnist          20,000 images
           BIGLP_DATA=folder python benchmarks/label.py text           8,000 news, by their words
           python benchmarks/label.py big [--rows 10000000]            rows × 64 numbers in a file
           python benchmarks/label.py refit [--pool 100000]            fits alone, wall and CPU
           python benchmarks/label.py kills [--kills 30]               kill -9 at random moments
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from biglp._core.memory import format_bytes, parse_memory, private_memory

ANSWERS = "answers.csv"
CLASSES = 10


class Server:
    """A running ``biglp label`` and a client that it knows."""

    def __init__(self, folder: Path, rows: str, *options: str, memory: str = "2GB") -> None:
        self.folder, self.peak, self.memory = folder, 0, memory
        command = [sys.executable, "-m", "biglp", "label", rows, "--no-browser", "--labels"]
        command += [ANSWERS, "--memory", memory, "-o", "out", *options]
        self.log = open(folder / "log.txt", "w+")  # noqa: SIM115  as long as the server
        began = time.perf_counter()
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.log, stderr=self.log)
        while (found := re.search(r"http://\S+\?token=\S+\s", self.text)) is None:
            if self.process.poll() is not None:
                raise SystemExit(self.text)
            time.sleep(0.02)
        self.started = time.perf_counter() - began
        base = found[0].partition("/?")[0]
        headers = {"origin": base, "x-biglp": "1"}
        self.client = httpx.Client(base_url=base, headers=headers, timeout=120)
        self.client.get(found[0].strip())
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def text(self) -> str:
        """What it has printed."""
        return (self.folder / "log.txt").read_text()

    @property
    def state(self) -> dict[str, Any]:
        """The state of the session."""
        return self.client.get("/api/state").json()

    def post(self, path: str, **given: Any) -> dict[str, Any]:
        """Send something."""
        reply = self.client.post(path, json={"answer": str(uuid.uuid4()), **given})
        reply.raise_for_status()
        return reply.json()

    def _watch(self) -> None:
        while self.process.poll() is None:
            self.peak = max(self.peak, private_memory(self.process.pid))
            time.sleep(0.02)

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(120)
        self.log.close()


def session(server: Server, truth: Callable[[int], str], n: int, pace: float) -> dict[str, Any]:
    """Label n rows."""
    latencies, fits = [], {}
    cards = server.client.get("/api/next").json()["cards"]
    for _ in range(n):
        row = cards[0]["row"]
        began = time.perf_counter()
        cards = server.post("/api/answer", row=row, label=truth(row))["next"]
        if cards[0]["content"]["kind"] == "image":
            server.client.get(cards[0]["content"]["src"])
        latencies.append(time.perf_counter() - began)
        time.sleep(pace)
        model = server.state["model"]
        if model["seconds"] is not None:
            fits[model["labels"]] = model["seconds"]
    while (model := server.state["model"])["labels"] < n:
        if model["problem"]:
            raise SystemExit(model["problem"])
        time.sleep(0.1)
    fits[n] = model["seconds"]
    state = server.state
    return {
        "rows": state["rows"],
        "pool": state["pool_rows"],
        "labels": state["labelled"],
        "ready_seconds": round(server.started, 2),
        "next_card_ms": {
            "median": round(1e3 * float(np.median(latencies)), 1),
            "95 %": round(1e3 * float(np.quantile(latencies, 0.95)), 1),
            "most": round(1e3 * max(latencies), 1),
        },
        "fit_seconds": {
            "median": round(float(np.median(list(fits.values()))), 2),
            "most": round(max(fits.values()), 2),
            "fits": len(fits),
        },
        "estimate": state["estimate"],
        "load": round(os.getloadavg()[0], 1),
    }


def finished(server: Server) -> dict[str, Any]:
    """Fit all rows; return what it says."""
    began = time.perf_counter()
    server.post("/api/finish")
    while (state := server.state["finish"])["state"] == "running":
        time.sleep(0.5)
    return {**state, "seconds": round(time.perf_counter() - began, 1)}


def right(found: np.ndarray, truth: np.ndarray, folder: Path) -> float:
    """Share of the rows without an answer that are right, in percent."""
    with open(folder / ANSWERS, newline="") as file:
        known = [int(line["row"]) for line in csv.DictReader(file)]
    hidden = np.ones(len(truth), dtype=bool)
    hidden[known] = False
    return round(100 * float((found == truth)[hidden].mean()), 2)


def measured(server: Server, truth: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    """A session, the fit of all rows where that is wanted, and the memory of it all."""
    result = session(server, lambda row: str(truth[row]), args.labels, args.pace)
    result["memory_loop"] = f"{format_bytes(server.peak)} of {server.memory}"
    if not args.no_finish:
        result["finish"] = finished(server)
        found = _found(server.folder / "out")
        result["right"] = right(found.astype(str), truth.astype(str), server.folder)
    server.end()
    result["memory"] = f"{format_bytes(server.peak)} of {server.memory}"
    result["within_memory"] = server.peak <= parse_memory(server.memory)
    return result


def _found(folder: Path) -> np.ndarray:
    if (folder / "labels.npy").exists():
        found = np.load(folder / "labels.npy", allow_pickle=False)
        names = folder / "classes.json"
        return np.array(json.loads(names.read_text()))[found] if names.exists() else found
    import pyarrow.parquet as pq

    return pq.read_table(folder / "labels.parquet").column("label").to_numpy()


def mnist(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """20,000 images of digits."""
    data = np.load(Path(os.environ["BIGLP_DATA"]) / "mnist.npz")
    chosen = np.sort(np.random.default_rng(args.seed).choice(70_000, 20_000, replace=False))
    np.save(folder / "mnist.npy", data["X"][chosen])
    server = Server(folder, "mnist.npy", "--seed", str(args.seed), memory=args.memory)
    return measured(server, data["y"][chosen], args)


def text(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """A table with a column of text; the column of the truth is left out."""
    with open(Path(os.environ["BIGLP_DATA"]) / "ag_news_8k.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    with open(folder / "news.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["text"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    truth = np.array([line["label"] for line in lines])
    server = Server(folder, "news.csv", "--text", "text", memory=args.memory)
    return measured(server, truth, args)


def big(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Many rows of 64 numbers in a file: clusters that overlap, two a class."""
    rng = np.random.default_rng(args.seed)
    centres = rng.normal(size=(2 * CLASSES, 64)).astype(np.float32)
    rows = np.lib.format.open_memmap(
        folder / "rows.npy", "w+", dtype=np.float32, shape=(args.rows, 64)
    )
    truth = np.empty(args.rows, dtype=np.int8)
    for start in range(0, args.rows, 100_000):
        stop = min(start + 100_000, args.rows)
        cluster = rng.integers(0, 2 * CLASSES, stop - start)
        noise = rng.standard_normal((stop - start, 64), dtype=np.float32)
        rows[start:stop] = centres[cluster] + 1.3 * noise
        truth[start:stop] = cluster % CLASSES
    rows.flush()
    del rows
    server = Server(folder, "rows.npy", memory=args.memory)
    return measured(server, truth, args)


def refit(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Fits of the loop's model without a server: seconds on the clock and of the processor."""
    from biglp._core.settings import Settings
    from biglp._engines import make_engine
    from biglp._labelling.learner import Learner, PoolSource
    from biglp._labelling.session import LANDMARKS
    from biglp._rows import as_source

    rng = np.random.default_rng(args.seed)
    centres = rng.normal(size=(2 * CLASSES, 64))
    cluster = rng.integers(0, 2 * CLASSES, args.pool)
    rows = (centres[cluster] + 1.3 * rng.normal(size=(args.pool, 64))).astype(np.float32)
    parameters = {"memory": args.memory, "random_state": args.seed, "n_landmarks": LANDMARKS}
    clock, processor, labels, fit = [], [], {}, None
    with make_engine("threads", None) as engine:
        pool = PoolSource(as_source(rows), np.arange(args.pool))
        learner = Learner(engine, Settings.without_labels(parameters), pool)
        chosen = learner.prepare()
        learner.sum()
        while len(labels) < args.labels:
            for row in chosen[: 20 if not labels else 4]:
                labels[int(row)] = f"class {cluster[row] % CLASSES}"
            began = time.process_time()
            fit = learner.fit(labels, len(labels), fit)
            processor.append(time.process_time() - began)
            clock.append(fit.seconds)
            chosen = fit.suggested
    return {
        "pool": args.pool,
        "fits": len(clock),
        "seconds": {"median": round(float(np.median(clock)), 2), "most": round(max(clock), 2)},
        "cpu_seconds": {
            "median": round(float(np.median(processor)), 2),
            "most": round(max(processor), 2),
        },
        "load": round(os.getloadavg()[0], 1),
    }


def kills(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Kill the server at random moments while answers come; the page sends again what it must."""
    rng = random.Random(args.seed)
    centres = np.random.default_rng(0).normal(size=(3, 8)) * 4
    truth = np.random.default_rng(1).integers(0, 3, 200_000)
    noise = np.random.default_rng(2).normal(size=(len(truth), 8))
    np.save(folder / "rows.npy", (centres[truth] + noise).astype(np.float32))
    expected: dict[int, str] = {}
    steps, sent, row, answered = [], None, 0, 0
    for _ in range(args.kills):
        server = Server(folder, "rows.npy", memory=args.memory)
        killer = threading.Timer(rng.uniform(0.0, 3.0), server.process.kill)
        killer.start()
        try:
            while True:
                if sent is None:
                    sent = _next_step(rng, row, truth, steps)
                    row += len(sent[1].get("rows", [0]))
                path, given = sent
                server.client.post(path, json=given).raise_for_status()
                _done(path, given, expected, steps)
                sent, answered = None, answered + 1
        except httpx.TransportError:
            pass
        server.process.wait()
        server.log.close()
    server = Server(folder, "rows.npy", memory=args.memory)
    if sent is not None:
        server.client.post(sent[0], json=sent[1]).raise_for_status()
        _done(*sent, expected, steps)
    server.end()
    with open(folder / ANSWERS, newline="") as file:
        lines = [(int(line["row"]), line["label"]) for line in csv.DictReader(file)]
    return {
        "kills": args.kills,
        "confirmed": answered,
        "lines": len(lines),
        "lost": len(expected.keys() - dict(lines).keys()),
        "doubled": len(lines) - len(dict(lines)),
        "exactly_what_was_answered": dict(lines) == expected,
    }


def _next_step(rng: random.Random, row: int, truth: np.ndarray, steps: list[Any]) -> Any:
    """An answer, many at once, a correction, a skip or a step back."""
    given: dict[str, Any] = {"answer": str(uuid.uuid4())}
    kind = rng.random()
    if kind < 0.1 and steps:
        return "/api/undo", given
    if kind < 0.2:
        rows = list(range(row, row + rng.randint(2, 50)))
        return "/api/answers", {**given, "rows": rows, "label": "many"}
    if kind < 0.3:
        return "/api/skip", {**given, "row": row}
    if kind < 0.4 and row:
        return "/api/answer", {**given, "row": rng.randrange(row), "label": "corrected"}
    return "/api/answer", {**given, "row": row, "label": f"class {truth[row]}"}


def _done(path: str, given: dict[str, Any], expected: dict[int, str], steps: list[Any]) -> None:
    """Follow what a confirmed step does to the labels."""
    if path == "/api/undo":
        for row, label in steps.pop():
            if label is None:
                expected.pop(row, None)
            else:
                expected[row] = label
        return
    rows = given.get("rows", [given.get("row")])
    labelled = path != "/api/skip"
    steps.append([(row, expected.get(row)) for row in rows] if labelled else [])
    if labelled:
        expected.update(dict.fromkeys(rows, given["label"]))


def main() -> None:
    """Run one of the sessions."""
    sessions = {"mnist": mnist, "text": text, "big": big, "refit": refit, "kills": kills}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("session", choices=list(sessions))
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--pace", type=float, default=0.5, help="seconds to look at a card")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--pool", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-finish", action="store_true", help="leave the fit of all rows out")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="biglp-label-") as folder:
        found = sessions[args.session](Path(folder), args)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
