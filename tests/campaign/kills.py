"""Runs that are killed, told to end, or find the disk full: what follows is the same result."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from campaign.problems import write_problem
from campaign.processes import NAME_TIMES, Forked, run, same_results

MOST_ATTACKS = 8


class Attacked:
    def __init__(self, seed: int, folder: Path) -> None:
        self.choose, self.folder = random.Random(seed), folder
        self.command = ["fit", *write_problem(self.choose, folder)]
        if self.choose.random() < 0.5:
            self.command += ["--confidence"]
        began = time.monotonic()
        code, said = run(folder, *self.command, "-o", "whole")
        assert code == 0, f"without an attack: {code} {said}"
        self.seconds = time.monotonic() - began
        if self.choose.random() < 0.25:  # new rows instead of a fit
            rows = self.command[1]
            self.command = ["predict", "whole/model.biglp", rows]
            code, said = run(folder, *self.command, "-o", "again")
            assert code == 0, f"without an attack: {code} {said}"
            self.whole = folder / "again"
        else:
            self.whole = folder / "whole"

    def start(self, *options: object, **more: Any) -> Forked:
        return Forked(self.folder, *self.command, "-o", "out", *options, **more)

    def check_state(self) -> None:
        out = self.folder / "out"
        if (out / "summary.json").exists():
            for path in self.whole.iterdir():
                if path.name not in NAME_TIMES:
                    assert (out / path.name).read_bytes() == path.read_bytes(), path.name

    def finish(self) -> None:
        code, said = run(self.folder, *self.command, "-o", "out", "--resume")
        assert code == 0, f"resumed: {code} {said}"
        same_results(self.whole, self.folder / "out")


def killed(seed: int, folder: Path) -> int:
    run_ = Attacked(seed, folder)
    for attacks in range(1, MOST_ATTACKS + 1):  # noqa: B007  returned
        if run_.choose.random() < 0.5:
            process = run_.start("--resume", dies_at=run_.choose.randrange(1, 40))
            code = process.wait(120)
            assert code is not None, "hangs"
        else:
            process = run_.start("--resume")
            process.wait(run_.choose.uniform(0, 0.8 * run_.seconds))
            code = process.signal(signal.SIGKILL)
        assert code in (0, -9), f"{code} {process.stderr}"
        run_.check_state()
        if code == 0:
            break
    run_.finish()
    return attacks


def terminated(seed: int, folder: Path, number: int = signal.SIGTERM, expected: int = 143) -> int:
    run_ = Attacked(seed, folder)
    for attacks in range(1, MOST_ATTACKS + 1):  # noqa: B007  returned
        process = run_.start("--resume")
        # Before the command has begun, the process is this one's copy and has its handlers.
        process.wait(0.05 + run_.choose.uniform(0, 0.8 * run_.seconds))
        code = process.signal(number)
        assert code in (0, expected, -number), f"{code} {process.stderr}"
        run_.check_state()
        if code == 0:
            break
    run_.finish()
    return attacks


def interrupted(seed: int, folder: Path) -> int:
    return terminated(seed, folder, signal.SIGINT, 130)


def disk_full(seed: int, folder: Path) -> int:
    run_ = Attacked(seed, folder)
    largest = max(path.stat().st_size for path in [*run_.whole.iterdir(), *folder.glob("rows.*")])
    for attacks in range(1, 4):  # noqa: B007  returned
        process = run_.start("--resume", file_size=int(run_.choose.uniform(0.01, 1.3) * largest))
        code = process.wait(120)
        assert code in (0, 4), f"{code} {process.stderr}"
        assert code == 0 or "biglp: " in process.stderr
        run_.check_state()
        if code == 0:
            break
    run_.finish()
    return attacks


def changed_input(seed: int, folder: Path) -> int:
    run_ = Attacked(seed, folder)
    process = run_.start()
    process.wait(run_.choose.uniform(0.2, 0.9) * run_.seconds)
    process.signal(signal.SIGKILL)
    rows = next(folder.glob("rows.*"))
    before, content = rows.stat(), rows.read_bytes()
    mode = run_.choose.choice(["longer", "touched"])
    rows.write_bytes(content + (b"\n" if mode == "longer" else b""))
    os.utime(rows, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    began = (folder / "out" / ".biglp-run" / "run.json").exists()
    if began:
        code, said = run(folder, *run_.command, "-o", "out", "--resume")
        if mode == "longer" and rows.suffix == ".parquet" and code == 3:
            assert "cannot be read as Parquet" in said, said  # its end is where its index is
        else:
            assert code == 5, f"changed input: {code} {said}"
            assert "cannot be resumed" in said, said
    rows.write_bytes(content)
    os.utime(rows, ns=(before.st_atime_ns, before.st_mtime_ns))
    run_.finish()
    return 1
