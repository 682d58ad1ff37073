"""How near `biglp inspect` comes: time and memory of ten configurations, estimated and measured.

Every configuration is inspected and then fitted, one after the other, each in a process of its own
with as many threads. The machine need not be idle: times are compared as processor time, and clock
time stands beside it. Data are made on the spot, but for news and digits, which come from
``BIGLP_DATA`` and are left out without it::

    python benchmarks/inspect_estimates.py [--only NAME ...] [--threads 1] [--full] [--steps]

Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
FIT = """
import json, sys, time
from pathlib import Path
from biglp._jobs import FitJob
asked = json.loads(sys.argv[1])
asked["labels"] = tuple(asked.get("labels", ()))
cpu, clock = time.process_time(), time.perf_counter()
found = FitJob((asked.pop("rows"),), Path("out"), **asked).run()
cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
keys = ("peak_memory", "memory_plan", "steps")
print(json.dumps({"cpu": cpu, "clock": clock, **{key: found[key] for key in keys}}))
"""
INSPECT = """
import sys
sys.argv[0] = "biglp"
from biglp.cli import main
main()
"""


@dataclass
class Case:
    """Files of a configuration, and how they are asked about and fitted.

    Attributes
    ----------
    rows : str
    labels : str, optional
        File of labels.
    label_column, text : str, optional
    factor : str, optional
        Another factor than the default committee.
    parameters : dict
        Of the fit: memory, factor.
    """

    rows: str
    labels: str | None = None
    label_column: str | None = None
    text: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> list[str]:
        """Options of ``biglp inspect``."""
        found = [self.rows]
        named = {"labels": self.labels, "label-column": self.label_column, "text": self.text}
        named["memory"] = self.parameters.get("memory")
        return found + [part for n, v in named.items() if v for part in (f"--{n}", str(v))]

    @property
    def job(self) -> dict[str, Any]:
        """Attributes of a FitJob."""
        found: dict[str, Any] = {"rows": self.rows, "label_column": self.label_column}
        found["labels"] = [self.labels] if self.labels else []
        found["reading"] = {"text": [self.text]} if self.text else {}
        return {**found, "parameters": self.parameters}

    def method(self, methods: list[dict[str, Any]]) -> dict[str, Any]:
        """The line of ``inspect`` for what is fitted."""
        factor = self.parameters.get("factor")
        options = f"--factor {factor}" if factor else ""
        return next(method for method in methods if method["options"] == options)


def arrays(n: int, m: int, c: int, labels: int, **parameters: Any) -> Case:
    """Overlapping groups of rows in an .npy file."""
    rng = np.random.default_rng(0)
    groups = rng.integers(c, size=n)
    rows = rng.normal(size=(n, m)).astype(np.float32) * 1.5
    rows += rng.normal(size=(c, m)).astype(np.float32)[groups] * 2
    np.save("rows.npy", rows)
    np.save("labels.npy", shown(groups, labels))
    return Case("rows.npy", labels="labels.npy", parameters=parameters)


def shown(classes: np.ndarray, labels: int) -> np.ndarray:
    """Classes of some rows, at least two of each; -1 for the others."""
    rng = np.random.default_rng(1)
    order = rng.permutation(len(classes))
    first = [order[classes[order] == code][:2] for code in np.unique(classes)]
    chosen = np.concatenate([*first, order[:labels]])
    found = np.full(len(classes), -1)
    found[chosen] = classes[chosen]
    return found


def customers(ending: str, n: int) -> Case:
    """A table as people have it."""
    from customers import make_customers

    table, left = make_customers(n)
    table["left"] = pd.Series(shown(left.astype(int), 200)).map({0: "no", 1: "yes"})
    name = f"customers.{ending}"
    table.to_csv(name, index=False) if ending == "csv" else table.to_parquet(name, index=False)
    return Case(name, label_column="left")


def words(n: int, m: int) -> Case:
    """Sparse rows, 60 entries each, in LIBSVM's format."""
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=n)
    columns = (m * rng.random((n, 60)) ** (1.5 + 0.5 * classes[:, None])).astype(int)
    values = rng.integers(1, 4, size=columns.size)
    rows = sparse.csr_matrix((values, (np.repeat(np.arange(n), 60), columns.ravel())), (n, m))
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    dump_svmlight_file(rows, shown(classes, 100), "words.svm", zero_based=False)
    return Case("words.svm")


def wide(n: int, m: int) -> Case:
    """More columns than rows, as CSV."""
    rng = np.random.default_rng(0)
    classes = rng.integers(2, size=n)
    table = pd.DataFrame((rng.normal(size=(n, m)) + 0.1 * classes[:, None]).round(4))
    table = table.add_prefix("gene").assign(ill=shown(classes, 60))
    table.to_csv("genes.csv", index=False)
    return Case("genes.csv", label_column="ill")


def news() -> Case:
    """Sentences in a column."""
    table = pd.read_csv(Path(os.environ["BIGLP_DATA"]) / "ag_news_8k.csv")
    table["topic"] = shown(table.pop("label").to_numpy(), 80)
    table.to_csv("news.csv", index=False)
    return Case("news.csv", label_column="topic", text="text")


def digits(n: int) -> Case:
    """Images of 784 pixels."""
    with np.load(Path(os.environ["BIGLP_DATA"]) / "mnist.npz") as file:
        rows, classes = file["X"][:n].reshape(n, -1), file["y"][:n].astype(int)
    np.save("digits.npy", rows)
    np.save("labels.npy", shown(classes, 100))
    return Case("digits.npy", labels="labels.npy")


CASES: dict[str, Callable[[], Case]] = {
    "customers, CSV, 10,000 × 17": lambda: customers("csv", 10_000),
    "customers, Parquet, 30,000 × 17": lambda: customers("parquet", 30_000),
    "numbers, 100,000 × 20": lambda: arrays(100_000, 20, 5, 200),
    "sparse LIBSVM, 5,000 × 17,600": lambda: words(5_000, 17_600),
    "news, text, 8,000": news,
    "MNIST, 5,000 × 784": lambda: digits(5_000),
    "100 classes, 10,000 × 32, 1,000 labels": lambda: arrays(10_000, 32, 100, 1000),
    "wide CSV, 300 × 20,000": lambda: wide(300, 20_000),
    "500,000 × 10, `--memory 250MB --factor nystrom`": lambda: arrays(
        500_000, 10, 3, 100, memory="250MB", factor="nystrom"
    ),
    "30,000 × 30, `--factor anchors`": lambda: arrays(30_000, 30, 4, 100, factor="anchors"),
}


def run(program: str, *arguments: str) -> tuple[dict[str, Any], float, float]:
    """What a program prints, its processor time and its clock time."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    after, clock = os.times(), time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return json.loads(done.stdout), cpu, clock


def measure(make: Callable[[], Case], options: argparse.Namespace) -> dict[str, Any]:
    """Inspect and fit one configuration in a temporary folder."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            case = make()
            asked = [*case.options, "--threads", str(options.threads), "--json"]
            found, cpu, clock = run(INSPECT, "inspect", *asked, *["--full"] * options.full)
            job = {**case.job, "threads": options.threads, "report": True}
            truth, _, _ = run(FIT, json.dumps(job))
        finally:
            os.chdir(here)
    method = case.method(found["methods"])
    return {"inspect": (cpu, clock), "said": method, "truth": truth}


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="inspect --full")
    parser.add_argument("--steps", action="store_true", help="print the steps of each estimate")
    options = parser.parse_args()
    print("| configuration | inspect takes | time: said | taken | | memory: said | taken | |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, make in CASES.items():
        if not any(part in name for part in options.only):
            continue
        if name.startswith(("news", "MNIST")) and "BIGLP_DATA" not in os.environ:
            continue
        found = measure(make, options)
        said, truth = found["said"], found["truth"]
        cpu, memory, peak = said["cpu_seconds"], said["memory"], truth["peak_memory"]
        print(
            f"| {name} | {found['inspect'][0]:.1f} s | {cpu:.1f} s | {truth['cpu']:.1f} s | "
            f"{cpu / truth['cpu']:.2f} | {memory >> 20} MB | {peak >> 20} MB | "
            f"{memory / peak:.2f} |",
            flush=True,
        )
        if options.steps:
            print("   ", said["seconds"], said["steps"], "\n   ", truth)


if __name__ == "__main__":
    main()
