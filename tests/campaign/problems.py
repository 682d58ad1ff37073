"""Small problems in files, at random: rows, labels, a format, and the options of a fit."""

import os
import random
from pathlib import Path

import numpy as np

import row_files
from campaign.processes import QUICK

FACTORS = {
    "anchors": ("--factor", "anchors", "-k", "40"),
    "nystrom": ("--factor", "nystrom", "-k", "30"),
    "linear": ("--factor", "linear"),
    "default": ("-k", "40"),
}


def write_problem(choose: random.Random, folder: Path, rows: int | None = None) -> list[str]:
    rng = np.random.default_rng(choose.getrandbits(32))
    n = rows or choose.randrange(3000, 6000 if QUICK else 40_000)
    classes, features = choose.randint(2, 5), choose.randint(3, 20)
    truth = rng.integers(0, classes, n)
    values = rng.normal(size=(n, features)).astype(choose.choice([np.float32, np.float64]))
    values[:, 0] += 3 * truth
    shown = np.where(np.arange(n) < 20 * classes, truth, -1)
    kind = choose.choice(["npy", "parquet", "csv", "libsvm"])
    before = Path.cwd()
    os.chdir(folder)
    try:
        named = row_files.write(kind, values, shown)
    finally:
        os.chdir(before)
    if kind == "libsvm":
        np.save(folder / "labels.npy", shown)
        named = (*named, "--labels", "labels.npy")
    return [*map(str, named), *FACTORS[choose.choice([*FACTORS])], "--threads", "1"]
