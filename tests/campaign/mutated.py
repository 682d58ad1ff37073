"""Damaged files of every format, and of every part of a model, through the command line."""

import io
import json
import os
import random
import resource
import shutil
import signal
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cli_tools
from campaign.damageable import FILES, write
from campaign.mutations import mutated
from campaign.processes import ENDINGS, QUICK, run

FILES_EACH, MODELS_EACH = (3, 12) if QUICK else (150, 100)
REPORT_SHARE = 0.1
"""Share of the files whose fit also writes its report, which takes longer than all the rest."""
OTHER_SHARE = 0.15
OTHERS = (["suggest", "-o", "suggested.csv", "--overwrite"], ["check", "--factor", "linear"])
"""What else reads rows and labels."""
SECONDS_EACH = 60
ADDRESSES = 12 << 30


def files(seed: int, folder: Path) -> int:
    choose = random.Random(seed)
    os.chdir(folder)
    command, targets = write(FILES[seed % len(FILES)], choose)
    contents = {path: path.read_bytes() for path in targets}

    def attempt() -> list[str]:
        for path, content in contents.items():
            path.write_bytes(content)
        target = choose.choice(targets)
        target.write_bytes(mutated(contents[target], choose))
        Path("attacked.txt").write_text(str(target))
        shutil.copy(target, "attacked.bin")
        if command[0] != "fit" or choose.random() < REPORT_SHARE:
            return command
        if choose.random() < OTHER_SHARE:
            return [*choose.choice(OTHERS), *command[1 : command.index("--factor")], "-q"]
        return [*command, "--no-report"]

    return _attack(FILES_EACH, attempt)


def models(seed: int, folder: Path) -> int:
    choose = random.Random(seed)
    os.chdir(folder)
    rng = np.random.default_rng(seed)
    truth = np.arange(120) % 3
    np.save("rows.npy", rng.normal(size=(120, 4)) + 2 * truth[:, None])
    np.save("labels.npy", np.where(np.arange(120) < 40, truth, -1))
    factor = choose.choice(["anchors", "nystrom", "linear", "glnp", "auto"])
    options = ("--factor", factor, "-k", "12", "-q", "-o", "fitted")
    code, said = run(folder, "fit", "rows.npy", "--labels", "labels.npy", *options)
    assert code == 0, f"the undamaged command: {code} {said}"
    whole = Path("fitted/model.biglp").read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}

    def attempt() -> list[str]:
        if choose.random() < 0.3:
            Path("attacked.biglp").write_bytes(mutated(whole, choose))
        else:
            name = choose.choice([*parts])
            damaged = {**parts, name: mutated(parts[name], choose)}
            with zipfile.ZipFile("attacked.biglp", "w") as archive:
                for each, content in damaged.items():
                    archive.writestr(each, content)
        if choose.random() < OTHER_SHARE:
            more = ["-o", "suggested.csv", "--overwrite", "-q"]
            return ["suggest", "rows.npy", "--model", "attacked.biglp", *more]
        return ["predict", "attacked.biglp", "rows.npy", "-o", "new", "--overwrite", "-q"]

    return _attack(MODELS_EACH, attempt)


def _attack(count: int, attempt: Callable[[], list[str]]) -> int:
    child = os.fork()
    if child == 0:
        code = 98
        try:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            for number in range(count):
                command = attempt()
                Path("number.txt").write_text(json.dumps([number, command]))
                signal.alarm(SECONDS_EACH)
                problem = _problem(command)
                signal.alarm(0)
                if problem:
                    Path("problem.txt").write_text(problem)
                    os._exit(97)
                if command[0] == "fit":  # "models" keeps what it has fitted
                    shutil.rmtree("out", ignore_errors=True)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        return count
    number, command = json.loads(Path("number.txt").read_text())
    told = Path("problem.txt").read_text() if code == 97 else f"the process ended with {code}"
    error = AssertionError(f"attempt {number}: {' '.join(command)}: {told}")
    error.tried = number + 1  # type: ignore[attr-defined]
    raise error


def _problem(command: list[str]) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = cli_tools.run(*command)
    if result.exit_code not in ENDINGS:
        return f"exit {result.exit_code}: {result.stderr[-3000:]} {result.exception!r}"
    if "Traceback" in result.output or "Warning:" in result.stderr:
        return f"said: {result.output[-3000:]}"
    return None
