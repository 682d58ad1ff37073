"""Commands in forked processes that have everything loaded, with limits and a watch on them."""

import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import cli_tools

FREQUENT = {"biglp._files.runfolder:JOURNAL_SECONDS": 0.02}
ENDINGS = {0, 2, 3, 4, 5, 6, 7, 8}
"""Exit codes that say what is wrong; 1 is a bug, 128 and more a crash."""
NAME_TIMES = {"summary.json", "report.html"}
"""Files that name times, and so differ from run to run."""


QUICK = bool(os.environ.get("BIGLP_CAMPAIGN_QUICK"))
"""Whether this is the part that CI runs."""


class Forked:
    def __init__(
        self,
        folder: Path,
        *args: object,
        patches: dict[str, Any] | None = None,
        file_size: int | None = None,
        dies_at: int | None = None,
        memory: int | None = None,
    ) -> None:
        self.folder = folder
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            # Until the command has its own handlers a signal ends it, whatever is being loaded.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            try:
                if dies_at is not None:
                    die_at(dies_at)
                if memory is not None:
                    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
                command = [str(arg) for arg in args]
                cli_tools._run(str(folder), command, patches or FREQUENT, file_size)
                code = 0
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 0
            except KeyboardInterrupt:  # outside the command: Python ends itself by the signal
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGINT)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)

    def wait(self, seconds: float) -> int | None:
        end = time.monotonic() + seconds
        while self._code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                return None
            else:
                time.sleep(0.002)
        return self._code

    def signal(self, number: int) -> int:
        if self._code is None:
            os.kill(self.pid, number)
        code = self.wait(60)
        if code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(60)
            raise AssertionError(f"signal {number} was ignored for a minute")
        return code

    @property
    def stderr(self) -> str:
        path = self.folder / "stderr.txt"
        return path.read_text(errors="replace") if path.exists() else ""


def run(folder: Path, *args: object, seconds: float = 120, **options: Any) -> tuple[int, str]:
    process = Forked(folder, *args, **options)
    code = process.wait(seconds)
    if code is None:
        process.signal(signal.SIGKILL)
        raise AssertionError(f"{' '.join(map(str, args))} hangs; it said: {process.stderr[-2000:]}")
    return code, process.stderr


def die_at(call: int) -> None:
    left = [call]

    def deadly(real: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return wrapped

    for name in ("replace", "rename", "fsync", "unlink", "rmdir", "mkdir"):
        setattr(os, name, deadly(getattr(os, name)))


def same_results(one: Path, other: Path) -> None:
    names = sorted(path.name for path in one.iterdir())
    found = sorted(path.name for path in other.iterdir())
    assert names == found, f"files are {found} where they should be {names}"
    for name in names:
        if name not in NAME_TIMES:
            assert (one / name).read_bytes() == (other / name).read_bytes(), f"{name} differs"
