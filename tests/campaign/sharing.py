"""Several processes at once: one cache, one output folder, a model that is being replaced."""

import random
import time
from pathlib import Path

from campaign.problems import write_problem
from campaign.processes import Forked, run, same_results

WAYS = ("cache", "overwrite", "first", "model")


def at_once(seed: int, folder: Path) -> int:
    choose = random.Random(seed)
    command = ["fit", *write_problem(choose, folder, choose.randrange(2000, 12_000))]
    code, said = run(folder, *command, "-o", "whole")
    assert code == 0, said
    return globals()[f"_{WAYS[seed % len(WAYS)]}"](choose, folder, command)


def _start(choose: random.Random, folder: Path, name: str, *command: object) -> Forked:
    here = folder / f"messages-{name}"
    here.mkdir()
    for path in folder.iterdir():
        if path.name.startswith(("rows", "labels")) or path.name in ("whole", "shared", "out"):
            (here / path.name).symlink_to(path)
    time.sleep(choose.choice([0, 0, choose.uniform(0, 0.5)]))
    return Forked(here, *command)


def _ended(process: Forked) -> int:
    code = process.wait(200)
    assert code is not None, f"hangs: {process.stderr}"
    return code


def _cache(choose: random.Random, folder: Path, command: list[str]) -> int:
    (folder / "shared").mkdir()
    names = [str(number) for number in range(choose.choice([2, 3, 4]))]
    running = [
        _start(choose, folder, name, *command, "-o", "out", "--cache", folder / "shared")
        for name in names
    ]
    for name, process in zip(names, running, strict=True):
        assert _ended(process) == 0, process.stderr
        same_results(folder / "whole", folder / f"messages-{name}" / "out")
    left = [path.name for path in (folder / "shared").iterdir()]
    assert not [name for name in left if name.endswith((".part", ".lock"))], left
    return len(names)


def _overwrite(choose: random.Random, folder: Path, command: list[str]) -> int:
    return _into_one(choose, folder, [*command, "--overwrite"], {0, 5})


def _first(choose: random.Random, folder: Path, command: list[str]) -> int:
    return _into_one(choose, folder, command, {0, 2, 5})


def _into_one(choose: random.Random, folder: Path, command: list[str], allowed: set[int]) -> int:
    (folder / "out").mkdir()
    running = [
        _start(choose, folder, str(number), *command, "-o", folder / "out")
        for number in range(choose.choice([2, 3, 4]))
    ]
    codes = [_ended(process) for process in running]
    said = [process.stderr for process in running]
    assert {*codes} <= allowed, (codes, said)
    assert 0 in codes, (codes, said)
    same_results(folder / "whole", folder / "out")
    return len(codes)


def _model(choose: random.Random, folder: Path, command: list[str]) -> int:
    (folder / "out").mkdir()
    predict = ["predict", folder / "whole" / "model.biglp", command[1]]
    code, said = run(folder, *predict, "-o", "reference")
    assert code == 0, said
    code, said = run(folder, *command, "-o", folder / "out", "--overwrite")
    assert code == 0, said
    writer = _start(choose, folder, "fit", *command, "-o", folder / "out", "--overwrite")
    tried = 0
    while writer.wait(0) is None:
        here = folder / f"messages-{tried}"
        here.mkdir()
        code, said = run(
            here, "predict", folder / "out" / "model.biglp", folder / command[1], "-o", "new"
        )
        if code == 0:
            same_results(folder / "reference", here / "new")
        else:  # the folder is without its old results for a moment
            assert code == 5, (code, said)
        tried += 1
    assert _ended(writer) == 0, writer.stderr
    return tried
