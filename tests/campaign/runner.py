"""Runs cases side by side, each in a process of its own, and keeps those that fail."""

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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from campaign.kinds import HOUR, KINDS, Kind

LOADED = ("biglp.cli", "biglp._jobs.fit", "biglp._jobs.predict", "biglp._output.table")
LOADED += ("biglp._tables.delimited", "biglp._learn.committee.method", "biglp.cli.running")
LOADED += ("biglp.estimators", "scipy.sparse", "pyarrow.parquet")
"""Loaded once, before the first case: a case then pays for its work alone."""
RESERVE = 1.15
"""Kinds go on with what they must try until they have this much more."""


class Running(NamedTuple):
    kind: Kind
    seed: int
    folder: Path
    began: float


class Campaign:
    def __init__(self, kinds: list[Kind], seed: int, output: Path) -> None:
        self.kinds, self.seed, self.output = kinds, seed, output
        self.tried: Counter[str] = Counter()
        self.cases: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.began, self.seconds = time.monotonic(), HOUR

    def run(self, jobs: int, seconds: float, cases: dict[str, int] | None = None) -> None:
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
            waiting = [k for k in self.kinds if cases is None or started[k.name] < cases[k.name]]
            now = time.monotonic()
            over = cases is None and now - self.began > seconds
            if waiting and not over and len(running) < jobs:
                busy = Counter(used)
                for one in running.values():
                    busy[one.kind.name] += now - one.began
                # Kinds that have tried what they must leave their time to those that have not.
                done = [kind for kind in waiting if kind.asked and self.reached(kind)]
                if any(kind.asked and kind not in done for kind in waiting):
                    waiting = [kind for kind in waiting if kind not in done]
                kind = min(waiting, key=lambda each: busy[each.name] / each.share)
                pid, one = _start(kind, self.seed + started[kind.name])
                started[kind.name] += 1
                running[pid] = one
                continue
            if not running:
                return
            for pid, one in list(running.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                hangs = time.monotonic() - one.began > one.kind.seconds
                if ended or hangs:
                    del running[pid]
                    used[one.kind.name] += time.monotonic() - one.began
                    self._ended(pid, one, None if not ended else status)
            time.sleep(0.02)

    def reached(self, kind: Kind) -> bool:
        return self.tried[kind.name] >= RESERVE * kind.asked * min(self.seconds / HOUR, 1.0)

    def _ended(self, pid: int, one: Running, status: int | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what it has started, and itself where it hangs
        if status is None:
            os.waitpid(pid, 0)
        try:
            found = json.loads((one.folder / "result.json").read_text())
        except (OSError, ValueError):
            how = "hangs" if status is None else f"ended with status {status} and said nothing"
            found = {"tried": 1, "problem": f"the case {how}"}
        name = one.kind.name
        self.cases[name] += 1
        self.tried[name] += found["tried"]
        if problem := found["problem"]:
            kept = self.output / "failures" / f"{name}-{one.seed}"
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(one.folder, kept, symlinks=True, ignore=_not_plain)
            (kept / "problem.txt").write_text(problem)
            self.failures.append({"kind": name, "seed": one.seed, "problem": problem})
            last = problem.strip().splitlines()[-1:]
            print(f"FAILED {name}:{one.seed}  {last}"[:300], file=sys.stderr, flush=True)
        shutil.rmtree(one.folder, ignore_errors=True)

    def report(self) -> str:
        lines = [f"{'kind':<9} {'cases':>6} {'tried':>7} {'failed cases':>13} {'asked':>7}  what"]
        failed = Counter(each["kind"] for each in self.failures)
        short = []
        for kind in self.kinds:
            name = kind.name
            numbers = f"{self.cases[name]:>6,} {self.tried[name]:>7,} {failed[name]:>13,}"
            asked = f"{kind.asked:>7,}" if kind.asked else " " * 7
            lines.append(f"{name:<9} {numbers} {asked}  {kind.counted}")
            if self.tried[name] < kind.asked:
                short.append(f"{name} {self.tried[name]:,} of {kind.asked:,}")
        lines.append(f"asked for, not reached: {', '.join(short) or 'nothing'}")
        lines.append(f"{(time.monotonic() - self.began) / 60:.1f} minutes, seed {self.seed}")
        lines += [f"replay with: --replay {each['kind']}:{each['seed']}" for each in self.failures]
        return "\n".join(lines)


@contextmanager
def _temporary_files_in(folder: Path) -> Any:
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    try:
        yield
    finally:
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before


def replay(case: str, output: Path) -> int:
    name, _, seed = case.partition(":")
    folder = (output / f"replay-{name}-{seed}").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with _temporary_files_in(folder):
        tried = KINDS[name].load()(int(seed), folder)
    print(f"survived: {tried} tried; files are in {folder}")
    return 0


def _start(kind: Kind, seed: int) -> tuple[int, Running]:
    folder = Path(tempfile.mkdtemp(prefix=f"campaign-{kind.name}-{seed}-"))
    one = Running(kind, seed, folder, time.monotonic())
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid, one
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(folder / "output.txt", "ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    result: dict[str, object] = {"tried": 0, "problem": ""}
    try:
        with _temporary_files_in(folder):
            result["tried"] = kind.load()(seed, folder)
    except BaseException as error:
        result = {"tried": getattr(error, "tried", 1), "problem": traceback.format_exc()}
    (folder / "result.json").write_text(json.dumps(result))
    os._exit(0)


def _not_plain(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if not (path := Path(folder, name)).is_dir()
        and (path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 22)
    ]
