"""Running the command line in tests: in this process, or in one that can be killed.

Processes come from a server that has loaded everything once; a test then pays for its work and not
for imports.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, reduce
from pathlib import Path
from typing import Any

import psutil
import typer.testing
from typer.testing import CliRunner, Result

from biglp._core import private_memory
from biglp._graph import AnswerSweep

_write_block = AnswerSweep.write_block
# A command line takes longer to build than most commands to run; it keeps nothing of a run.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[assignment]
PRELOADED = ["biglp.cli", "biglp._jobs.fit", "biglp._output.table", "biglp.cli.running"]
PRELOADED += ["biglp._labelling.app", "uvicorn"]


def run(*args: object, program: str = "biglp") -> Result:
    if program == "paper":
        from paper.__main__ import app
    else:
        from biglp.cli import app
    return CliRunner().invoke(app, [str(arg) for arg in args])


def done(*args: object, program: str = "biglp") -> Result:
    result = run(*args, program=program)
    assert result.exit_code == 0, result.output
    return result


def failed(code: int, *args: object, program: str = "biglp") -> str:
    result = run(*args, program=program)
    assert result.exit_code == code, (result.exit_code, result.output)
    assert "Traceback" not in result.output
    message: str = result.stderr
    assert message.count("biglp: ") == 1
    return message


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )


def watched(command: Iterable[object], folder: Path) -> tuple[int, int, str]:
    """How a command ended, the most its Python processes took at once together, and its words."""
    with open(folder / "said.txt", "wb") as said:
        process = subprocess.Popen([*map(str, command)], cwd=folder, stdout=said, stderr=said)
        parent, peak = psutil.Process(process.pid), 0
        pythons, looked = [process.pid], 0.0
        while process.poll() is None:
            if time.monotonic() - looked > 0.1:
                with suppress(psutil.Error):
                    family = [parent, *parent.children(recursive=True)]
                    pythons = [one.pid for one in family if "python" in one.name()]
                looked = time.monotonic()
            peak = max(peak, sum(private_memory(pid) for pid in pythons))
            time.sleep(0.005)
    return process.returncode, peak, (folder / "said.txt").read_text(errors="replace")


class Process:
    def __init__(
        self,
        folder: Path,
        *args: object,
        patches: dict[str, Any] | None = None,
        file_size: int | None = None,
    ) -> None:
        server = "forkserver" in multiprocessing.get_all_start_methods()  # not on Windows
        context = multiprocessing.get_context("forkserver" if server else "spawn")
        context.set_forkserver_preload(PRELOADED)
        command = [str(arg) for arg in args]
        self.folder = folder
        self._process = context.Process(
            target=_run, args=(str(folder), command, patches or {}, file_size)
        )
        self._process.start()
        self.pid = self._process.pid

    def wait(self, seconds: float | None = None) -> int | None:
        self._process.join(seconds)
        code: int | None = self._process.exitcode
        return code

    def signal(self, number: int) -> int:
        assert self.pid is not None
        os.kill(self.pid, number)
        code = self.wait(60)
        assert code is not None
        return code

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr.txt").read_text()


def label_slowly(*args: Any, **kwargs: Any) -> Any:
    time.sleep(1.0)
    return _write_block(*args, **kwargs)


def _run(folder: str, command: list[str], patches: dict[str, Any], file_size: int | None) -> None:
    import importlib

    from biglp.cli import app

    os.chdir(folder)
    sys.argv = ["biglp", *command]
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = open("stderr.txt", "w")  # noqa: SIM115
    for name, value in patches.items():
        module, _, path = name.partition(":")
        *owners, attribute = path.split(".")
        owner = reduce(getattr, owners, importlib.import_module(module))
        setattr(owner, attribute, value)
    if file_size is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app(command)
    finally:
        sys.stderr.flush()
