"""Runs cases side by side, each in a process of its own, and keeps those that fail."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from campaign.kinds import HOUR, KINDS, Kind

LOADED = (
    "biglp.cli",
    "biglp._jobs.fit",
    "biglp._jobs.predict",
    "biglp._output.table",
    "biglp._tables.delimited",
    "biglp._learn.committee.method",
    "biglp.cli.running",
    "biglp.estimators",
    "scipy.sparse",
    "pyarrow.parquet",
)
"""Loaded once, before the first case: a case then pays for its work alone."""
RESERVE = 1.15
"""Kinds go on with what they must try until they have this much more."""


@dataclass
class Running:
    kind: Kind
    seed: int
    folder: Path
    began: float


@dataclass
class Campaign:
    """Cases of several kinds, in turns that follow their shares of the time.

    Attributes
    ----------
    tried : Counter
        Things that were tried, by kind.
    failures : list of dict
        Kind, seed and what happened.
    """

    kinds: list[Kind]
    seed: int
    output: Path
    tried: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, object]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    seconds: float = HOUR

    def run(self, jobs: int, seconds: float, cases: dict[str, int] | None = None) -> None:
        """Run until the time is over, or so many cases of each kind are done."""
        for name in LOADED:
            importlib.import_module(name)
        running: dict[int, Running] = {}
        self.seconds = seconds
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            self._run(running, jobs, seconds, cases)
        finally:  # interrupted: nothing is left at work
            for pid, one in running.items():
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                shutil.rmtree(one.folder, ignore_errors=True)

    def _run(
        self, running: dict[int, Running], jobs: int, seconds: float, cases: dict[str, int] | None
    ) -> None:
        used: Counter[str] = Counter()
        started: Counter[str] = Counter()
        while True:
            waiting = [
                kind
                for kind in self.kinds
                if cases is None or started[kind.name] < cases[kind.name]
            ]
            over = cases is None and time.monotonic() - self.began > seconds
            if waiting and not over and len(running) < jobs:
                now = time.monotonic()
                busy = Counter(used)
                for one in running.values():
                    busy[one.kind.name] += now - one.began
                kind = self._next(waiting, busy)
                pid, one = _start(kind, self.seed + started[kind.name])
                started[kind.name] += 1
                running[pid] = one
                continue
            if not running:
                return
            for pid in list(running):
                one = running[pid]
                ended, status = os.waitpid(pid, os.WNOHANG)
                hangs = time.monotonic() - one.began > one.kind.seconds
                if ended or hangs:
                    del running[pid]
                    used[one.kind.name] += time.monotonic() - one.began
                    self._ended(pid, one, None if not ended else status)
            time.sleep(0.02)

    def _next(self, waiting: list[Kind], busy: Counter[str]) -> Kind:
        """Choose the kind that has had least of its share of the time.

        Those that have tried what they must leave their time to the others that have not.
        """
        done = [each for each in waiting if each.asked and self.reached(each, RESERVE)]
        short = [each for each in waiting if each.asked and each not in done]
        if short:
            waiting = [each for each in waiting if each not in done]
        return min(waiting, key=lambda each: busy[each.name] / each.share)

    def reached(self, kind: Kind, reserve: float = 1.0) -> bool:
        """Whether a kind has tried what it must in a campaign of this length."""
        return self.tried[kind.name] >= reserve * kind.asked * min(self.seconds / HOUR, 1.0)

    def _ended(self, pid: int, one: Running, status: int | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what it has started, and itself where it hangs
        if status is None:
            os.waitpid(pid, 0)
        found = _result(one, status)
        self.cases[one.kind.name] += 1
        self.tried[one.kind.name] += found["tried"]
        if found["problem"]:
            self._keep(one, found["problem"])
        shutil.rmtree(one.folder, ignore_errors=True)

    def _keep(self, one: Running, problem: str) -> None:
        name = f"{one.kind.name}-{one.seed}"
        kept = self.output / "failures" / name
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(one.folder, kept, symlinks=True, ignore=_not_plain)
        (kept / "problem.txt").write_text(problem)
        self.failures.append({"kind": one.kind.name, "seed": one.seed, "problem": problem})
        last = problem.strip().splitlines()[-1] if problem.strip() else ""
        print(f"FAILED {one.kind.name}:{one.seed}  {last[:300]}", file=sys.stderr, flush=True)

    def report(self) -> str:
        """Write tried and survived, by kind."""
        lines = [f"{'kind':<9} {'cases':>6} {'tried':>7} {'failed cases':>13} {'asked':>7}  what"]
        failed = Counter(str(each["kind"]) for each in self.failures)
        for kind in self.kinds:
            name = kind.name
            numbers = f"{self.cases[name]:>6,} {self.tried[name]:>7,} {failed[name]:>13,}"
            asked = f"{kind.asked:>7,}" if kind.asked else " " * 7
            lines.append(f"{name:<9} {numbers} {asked}  {kind.counted}")
        short = [
            f"{kind.name} {self.tried[kind.name]:,} of {kind.asked:,}"
            for kind in self.kinds
            if self.tried[kind.name] < kind.asked
        ]
        lines.append(f"asked for, not reached: {', '.join(short) or 'nothing'}")
        lines.append(f"{(time.monotonic() - self.began) / 60:.1f} minutes, seed {self.seed}")
        for each in self.failures:
            lines.append(f"replay with: --replay {each['kind']}:{each['seed']}")
        return "\n".join(lines)


def replay(case: str, output: Path) -> int:
    """Run one case again in this process, in a folder that is kept, with its traceback."""
    name, _, seed = case.partition(":")
    folder = (output / f"replay-{name}-{seed}").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    try:
        tried = KINDS[name].load()(int(seed), folder)
    finally:
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before
    print(f"survived: {tried} tried; files are in {folder}")
    return 0


def _start(kind: Kind, seed: int) -> tuple[int, Running]:
    folder = Path(tempfile.mkdtemp(prefix=f"campaign-{kind.name}-{seed}-"))
    one = Running(kind, seed, folder, time.monotonic())
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(kind, seed, folder)
    return pid, one


def _child(kind: Kind, seed: int, folder: Path) -> None:
    """Run a case, write down how it ended, and leave without a word."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["TMPDIR"] = str(folder)  # what a killed process leaves goes with the case
    tempfile.tempdir = None
    with open(folder / "output.txt", "ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    result: dict[str, object] = {"tried": 0, "problem": ""}
    try:
        result["tried"] = kind.load()(seed, folder)
    except BaseException as error:
        result = {"tried": getattr(error, "tried", 1), "problem": traceback.format_exc()}
    (folder / "result.json").write_text(json.dumps(result))
    os._exit(0)


def _result(one: Running, status: int | None) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads((one.folder / "result.json").read_text())
    except (OSError, ValueError):
        how = "hangs" if status is None else f"ended with status {status} and said nothing"
        return {"tried": 1, "problem": f"the case {how}"}
    return found


def _not_plain(folder: str, names: list[str]) -> list[str]:
    """Pipes cannot be copied, and large files need not be: the seed makes them again."""
    return [
        name
        for name in names
        if not (path := Path(folder, name)).is_dir()
        and (path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 22)
    ]
