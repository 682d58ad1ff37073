"""Coverage-guided fuzzing of the readers that are written by hand, with atheris.

``pip install atheris``, then ``python tests/campaign/fuzz.py csv -max_total_time=300``: the first
argument is one of :data:`TARGETS`, the others are libFuzzer's. A file is read as the command line
reads it; what is not an error of biglp's own ends the run, and libFuzzer keeps the input.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[0] = str(HERE.parents[1])
sys.path.insert(0, str(HERE.parents[2] / "src"))

import atheris  # noqa: E402

with atheris.instrument_imports(include=["biglp._rows", "biglp._labels", "biglp._fit.model"]):
    import numpy as np

    from biglp._core import BigLPError
    from biglp._fit.model import FORMAT, VERSION, Model
    from biglp._labels import LabelInput
    from biglp._rows import as_source

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
N_ROWS = 6


def _rows(ending: str) -> Callable[[bytes], None]:
    path = FOLDER / f"rows.{ending}"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with tempfile.TemporaryDirectory(dir=FOLDER) as cache:
            source = as_source(path, cache=cache)
            source.read(0, source.n_rows)

    return read


def _labels(name: str) -> Callable[[bytes], None]:
    path = FOLDER / name

    def read(data: bytes) -> None:
        path.write_bytes(data)
        LabelInput(None, (str(path),), None).gather(N_ROWS)

    return read


def _model_header(data: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.json", data)
        for name in ("factor.P", "factor.offsets", "decision.coefficients"):
            array = io.BytesIO()
            np.save(array, np.ones((2, 2)))
            archive.writestr(f"{name}.npy", array.getvalue())
    (FOLDER / "model.biglp").write_bytes(buffer.getvalue())
    Model.load(FOLDER / "model.biglp")


HEADER = {
    "format": FORMAT,
    "version": VERSION,
    "classes": {"dtype": "<i8", "values": [0, 1]},
    "factor": "glnp",
    "decision": "spreading",
    "n_rows": 6,
    "scaling": "none",
    "dtype": "<f8",
    "n_features": 2,
    "arrays": ["factor.P", "factor.offsets", "decision.coefficients"],
    "report": {},
}
TASK = b'[{"data": {"row": 1}, "annotations": [{"result": [{"value": {"choices": ["a"]}}]}]}]'
TARGETS: dict[str, tuple[Callable[[bytes], None], bytes]] = {
    "csv": (_rows("csv"), b'a,b,c\n1,"x, y",2020-01-01\n2,"z\n""q""",\n3,,nan\n'),
    "libsvm": (_rows("libsvm"), b"1 1:0.5 3:2 # note\n-1 2:1e3\n0\n"),
    "jsonl": (_rows("jsonl"), b'{"a": 1, "b": "x"}\n{"a": null, "b": "y"}\n'),
    "labels.csv": (_labels("labels.csv"), b"row,label\n0,a\n3,b\n5,\n"),
    "labels.txt": (_labels("labels.txt"), b'a\nb\n-1\n"c"\n\na\n'),
    "labels.json": (_labels("labels.json"), TASK),
    "model": (_model_header, json.dumps(HEADER).encode()),
}
"""Readers by name, and a file to begin with."""


def main() -> None:
    """Fuzz one reader."""
    read, first = TARGETS[sys.argv.pop(1)]
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    (corpus / "first").write_bytes(first)

    def one_input(data: bytes) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(BigLPError):
                read(data)

    atheris.Setup([*sys.argv, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
