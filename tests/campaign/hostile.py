"""Files made to do harm: to run code, to fill the memory or the disk, to leave their folder."""

import gzip
import io
import json
import os
import pickle
import random
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from campaign.processes import ENDINGS, QUICK, run
from cli_tools import watched

MOST_BYTES = 900 << 20
SECONDS = 60


Way = Callable[[Path, Path], list[str]]


class Harm:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.mark}",)


def _pickled_npy(folder: Path, mark: Path) -> list[str]:
    np.save(folder / "x.npy", np.array([Harm(mark)] * 4, dtype=object), allow_pickle=True)
    return ["fit", "x.npy"]


def _pickled_npz(folder: Path, mark: Path) -> list[str]:
    np.savez(folder / "x.npz", X=np.array([[Harm(mark)] * 2] * 4, dtype=object))
    return ["fit", "x.npz"]


def _pickled_model(folder: Path, mark: Path) -> list[str]:
    (folder / "m.biglp").write_bytes(pickle.dumps(Harm(mark)))
    return ["predict", "m.biglp", "good.npy"]


def _pickled_part(folder: Path, mark: Path) -> list[str]:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Harm(mark)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(folder / "m.biglp", "w") as archive:
        header = {"format": "biglp model", "version": 2, "arrays": ["factor.P", "../../x"]}
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("factor.P.npy", buffer.getvalue())
        archive.writestr("../../x.npy", buffer.getvalue())
    return ["predict", "m.biglp", "good.npy"]


def _bomb_model(folder: Path, mark: Path) -> list[str]:
    with zipfile.ZipFile(folder / "m.biglp", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"format": "biglp model", "version": 2}))
        archive.writestr("x.npy", bytes(1 << 30))
    return ["predict", "m.biglp", "good.npy"]


def _bomb_npz(folder: Path, mark: Path) -> list[str]:
    header = np.lib.format
    buffer = io.BytesIO()
    header.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 2)}
    )
    with zipfile.ZipFile(folder / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", buffer.getvalue() + bytes(1 << 20))
    return ["fit", "x.npz"]


def _huge_npy(folder: Path, mark: Path) -> list[str]:
    with open(folder / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": True, "shape": (1 << 50, 1 << 12)}
        )
    return ["fit", "x.npy"]


def _gzip_bomb(folder: Path, mark: Path) -> list[str]:
    with gzip.open(folder / "x.csv.gz", "wb") as file:
        file.write(b"a,b,y\n1,2,")
        for _ in range(300):
            file.write(b"0" * (1 << 20))
    return ["fit", "x.csv.gz", "--label-column", "y"]


def _pipe(folder: Path, mark: Path) -> list[str]:
    os.mkfifo(folder / "m.biglp")
    return ["predict", "m.biglp", "good.npy"]


def _link(name: str, target: str, *command: str) -> Way:
    def _endless(folder: Path, mark: Path) -> list[str]:
        (folder / name).symlink_to(target)
        return [*command]

    return _endless


def _table(text: str, name: str, *command: str) -> Way:
    def _written(folder: Path, mark: Path) -> list[str]:
        (folder / name).write_text(text)
        return [*command]

    return _written


TABLE = ("x.csv", "--label-column", "y")
ESCAPES = [f"{i},{i % 7},\x1b]0;owned\x07\x1b[2J{i % 2}" for i in range(60)]
FORMULAS = [f"{i % 9 + i % 2 * 9},{i % 7},{['=cmd()', '+1+1'][i % 2]}" for i in range(60)]
DEEP = "[" * 100_000 + "]" * 100_000


def _odd_shape(folder: Path, mark: Path) -> list[str]:
    buffer = io.BytesIO()
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 20_000 + "), }"
    buffer.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text.encode())
    (folder / "x.npy").write_bytes(buffer.getvalue())
    return ["fit", "x.npy"]


WAYS: tuple[Way, ...] = (
    _pickled_npy, _pickled_npz, _pickled_model, _pickled_part, _bomb_model, _bomb_npz, _huge_npy,
    _gzip_bomb, _pipe, _odd_shape,
    _table(f'{{"a":{DEEP}}}\n', "x.jsonl", "fit", "x.jsonl", "--label-column", "a"),
    _table(DEEP, "l.json", "fit", "good.npy", "--labels", "l.json"),
    _link("m.biglp", "/dev/zero", "predict", "m.biglp", "good.npy"),
    _link("x.npy", "/dev/zero", "fit", "x.npy"),
    _link("x.parquet", "x.parquet", "fit", "x.parquet", "--label-column", "y"),
    _table("\x1b[31ma,b,y\n" + "\n".join(ESCAPES), "x.csv", "inspect", *TABLE),
    _table("a,b,y\n" + "\n".join(FORMULAS), "x.csv", "fit", *TABLE),
    _table("1 1:2 2147483646:1\n0 1:3\n" * 20, "x.libsvm", "fit", "x.libsvm"),
    _table(",".join(f"c{i}" for i in range(200_000)) + ",y\n", "x.csv", "fit", *TABLE),
)  # fmt: skip


def files(seed: int, folder: Path) -> int:
    mark, folder = folder / "harm", folder / "deep" / "work"
    folder.mkdir(parents=True)
    np.save(folder / "good.npy", np.random.default_rng(seed).normal(size=(60, 3)))
    np.save(folder / "labels.npy", np.r_[np.arange(20) % 2, np.full(40, -1)])
    way = WAYS[seed % len(WAYS)]
    command = way(folder, mark)
    if command[0] == "fit" and not {"--labels", "--label-column"} & {*command}:
        command += ["--labels", "labels.npy"]
    if command[0] != "inspect":
        command += ["-o", "out", "-q"]
    code, said = run(folder, *command, seconds=SECONDS)
    assert code in ENDINGS, f"{way.__name__} {seed % len(WAYS)}: {code} {said[-1500:]}"
    assert "Traceback" not in said
    assert not mark.exists(), f"{way.__name__} {seed % len(WAYS)}: code was run"
    assert not {"\x1b", "\x07"} & {*said}, "escape sequences reach the terminal"
    assert [path.name for path in folder.parent.iterdir()] == ["work"], "left its folder"
    if not QUICK and random.Random(seed).random() < 0.5:
        words = [sys.executable, "-c", "from biglp.cli import main; main()", *command]
        last = "--overwrite" if "-o" in command else "--json"
        _, peak, _ = watched([*words, last], folder)
        assert peak < MOST_BYTES, f"{way.__name__} {seed % len(WAYS)}: {peak >> 20} MB"
    return 1
