"""Rows in S3 on 127.0.0.1: how fast they are, and what happens when the store fails.

``speed`` times ``biglp fit`` on a local file and on the same file in a store (moto's server in a
process of its own), each in a fresh process: from the first byte to labels, model and summary. The
rows are single precision, in one ``.npy`` file, and in Parquet files of 64 MB as large tables are;
the method is the quickest there is, three plain sweeps, so that reading counts for most.

``faults`` runs ``biglp fit`` over and over while a proxy drops connections, answers 503, is slow,
sends half a body or turns over a bit, at random. Every run must end with the labels of a local run,
or with one message and a run that ``--resume`` finishes; no file under a final name may be another
than the local run's.

Run with:  python benchmarks/stores.py speed [--rows 1M] or python benchmarks/stores.py faults 50.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from store_server import FAULTS, KEYS, Store, serving  # the server and the proxy of the tests

FEATURES, CLASSES, FILE_BYTES = 128, 5, 64 << 20
QUICKEST = ("--factor", "nystrom", "--landmarks", "random", "-k", "20")
FAULTY = ("", "", "", *FAULTS)
"""What becomes of a request; three in nine get through."""


def main() -> None:
    """Measure one or the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="what", required=True)
    speed = kinds.add_parser("speed")
    speed.add_argument("--rows", default="1M", help="number of rows, such as 1M")
    faults = kinds.add_parser("faults")
    faults.add_argument("runs", type=int)
    faults.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["BIGLP_CACHE"] = str(Path(folder) / "cache")
        if options.what == "speed":
            measure_speed(int(float(options.rows[:-1]) * 1e6))
        else:
            count_faults(options.runs, options.seed)


def measure_speed(n_rows: int) -> None:
    """Fit from local files and from a store, each kind of file twice."""
    write_rows(n_rows)
    with server() as bucket:
        for name in ("labels.npy", "rows.npy", *map(str, sorted(Path("table").iterdir()))):
            bucket.upload(Path(name))
        for kind, rows in (("one .npy file", "rows.npy"), ("Parquet files", "table")):
            size = sum(path.stat().st_size for path in files_of(rows))
            times: dict[str, list[float]] = {"local": [], "S3": []}
            for _ in range(2):
                times["local"].append(fit(rows, "labels.npy", "out"))
                times["S3"].append(fit(bucket.uri(rows), bucket.uri("labels.npy"), "out"))
            local, remote = min(times["local"]), min(times["S3"])
            print(
                f"{kind}, {n_rows:,} rows × {FEATURES} float32, {size / 1e6:,.0f} MB: local "
                f"{local:.1f} s, S3 {remote:.1f} s: {local / remote:.2f} of the local file's speed",
                flush=True,
            )


def count_faults(runs: int, seed: int) -> None:
    """Fit again and again with faults at random, and count how the runs end."""
    write_rows(3000, FILE_BYTES // 512)
    fit("table", "labels.npy", "local")
    expected = {path.name: path.read_bytes() for path in Path("local").iterdir()}
    rng, faults = random.Random(seed), 0
    ends: Counter[str] = Counter()
    with serving() as store:
        os.environ |= store.environment
        for path in [Path("labels.npy"), *Path("table").iterdir()]:
            store.put(str(path), path.read_bytes())
        store.methods = ("GET", "HEAD", "PUT", "POST", "DELETE")
        for number in range(runs):
            harm = rng.choice((10, 40, 400))
            planned = [rng.choice(FAULTY) for _ in range(harm)]
            store.faults = [*planned]
            out = f"out-{number}"
            command = command_of(store.uri("table"), store.uri("labels.npy"), store.uri(out))
            done = subprocess.run(command, capture_output=True, text=True)
            faults += sum(map(bool, planned[: harm - len(store.faults)]))
            store.faults = []
            check_files(store, out, expected)
            if done.returncode == 0:
                ends["the same labels"] += 1
                continue
            # A bit that is turned over in a list of files names another file, which is not there.
            assert done.returncode in (3, 8), (done.returncode, done.stderr)
            assert done.stderr.count("biglp: ") == 1, done.stderr
            assert f"{out}/summary.json" not in store.names()
            kept = "Kept in" in done.stderr
            ends["one message" + ", and the same labels with --resume" * kept] += 1
            subprocess.run(command + ["--resume"] * kept, check=True, capture_output=True)
            check_files(store, out, expected)
            assert f"{out}/summary.json" in store.names()
    print(f"{runs} runs, {faults} faults, no half file:")
    for end, count in ends.items():
        print(f"  {count:3} ended with {end}")


def check_files(store: Store, out: str, expected: dict[str, bytes]) -> None:
    """Compare what is in the store with the files of the local run."""
    for name in store.names():
        last = name.rpartition("/")[2]
        if name.startswith(f"{out}/") and last in ("labels.parquet", "model.biglp"):
            assert store.get(name) == expected[last], name


def write_rows(n_rows: int, file_bytes: int = FILE_BYTES) -> None:
    """Write groups of rows: ``rows.npy``, ``table/`` and ``labels.npy``."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLASSES, size=n_rows)
    rows = rng.standard_normal((n_rows, FEATURES), dtype=np.float32)
    rows += 3.0 * np.eye(CLASSES, FEATURES, dtype=np.float32)[truth]
    np.save("rows.npy", rows)
    np.save("labels.npy", np.where(np.arange(n_rows) < 200, truth, -1))
    Path("table").mkdir()
    each = max(file_bytes // (4 * FEATURES), 1)
    for number, start in enumerate(range(0, n_rows, each)):
        part = rows[start : start + each]
        table = pa.table({f"f{column}": part[:, column] for column in range(FEATURES)})
        pq.write_table(table, f"table/part-{number:04}.parquet")


def files_of(name: str) -> list[Path]:
    """Files behind a name."""
    return [Path(name)] if Path(name).is_file() else sorted(Path(name).iterdir())


def command_of(rows: str, labels: str, out: str) -> list[str]:
    """The command that fits."""
    words = ["fit", rows, "--labels", labels, "-o", out, "--quiet"]
    return [sys.executable, "-m", "biglp", *words, *QUICKEST]


def fit(rows: str, labels: str, out: str) -> float:
    """Fit in a process of its own; return the seconds it took."""
    began = time.perf_counter()
    subprocess.run([*command_of(rows, labels, out), "--overwrite"], check=True)
    return time.perf_counter() - began


class Bucket:
    """A bucket on a server in another process."""

    def __init__(self, port: int) -> None:
        import obstore
        from obstore.store import S3Store

        os.environ |= {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
        urllib.request.urlopen(request).close()
        self._put = partial(
            obstore.put, S3Store("bucket", client_options={"allow_http": True, "timeout": "1h"})
        )

    def uri(self, name: str) -> str:
        """Name of a file in the store."""
        return f"s3://bucket/{name}"

    def upload(self, path: Path) -> None:
        """Put a file into the store."""
        self._put(str(path), path)


@contextmanager
def server() -> Iterator[Bucket]:
    """Run moto's server in a process of its own."""
    with socket.socket() as free:  # a port that nobody listens on
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(3)
            yield Bucket(port)
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
