"""Coverage-guided fuzzing of the readers that are written by hand, with atheris.

``pip install atheris``, then ``python tests/campaign/fuzz.py csv -max_total_time=300``: the first
argument is one of :data:`TARGETS`, the others are libFuzzer's. A file is read as the command line
reads it; what is not an error of biglp's own ends the run, and libFuzzer keeps the input.
"""

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[0] = str(HERE.parents[1])
sys.path.insert(0, str(HERE.parents[2] / "src"))

import atheris  # noqa: E402

with atheris.instrument_imports(include=["biglp._rows", "biglp._labels", "biglp._fit.model"]):
    import numpy as np

    from biglp import LowRankLabelPropagation
    from biglp._core import BigLPError
    from biglp._labels import LabelInput
    from biglp._rows import as_source

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
N_ROWS = 6
TASK = b'[{"data": {"row": 1}, "annotations": [{"result": [{"value": {"choices": ["a"]}}]}]}]'
TARGETS = {
    "csv": b'a,b,c\n1,"x, y",2020-01-01\n2,"z\n""q""",\n3,,nan\n',
    "libsvm": b"1 1:0.5 3:2 # note\n-1 2:1e3\n0\n",
    "jsonl": b'{"a": 1, "b": "x"}\n{"a": null, "b": "y"}\n',
    "labels.csv": b"row,label\n0,a\n3,b\n5,\n",
    "labels.txt": b'a\nb\n-1\n"c"\n\na\n',
    "labels.json": TASK,
    "model": b"",
}
"""Readers by name, and a file to begin with; for models it is a small one."""


def read(target: str, path: Path) -> None:
    if target == "model":
        LowRankLabelPropagation.load(path)
    elif target.startswith("labels"):
        LabelInput(None, (str(path),), None).gather(N_ROWS)
    else:
        with tempfile.TemporaryDirectory(dir=FOLDER) as cache:
            source = as_source(path, cache=cache)
            source.read(0, source.n_rows)


def main() -> None:
    target = sys.argv.pop(1)
    first, path = FOLDER / "corpus" / "first", FOLDER / f"read.{target}"
    first.parent.mkdir()
    first.write_bytes(TARGETS[target])
    if target == "model":
        model = LowRankLabelPropagation(factor="anchors", n_landmarks=2)
        model.fit(np.eye(N_ROWS), [0, 1, 0, 1, -1, -1]).save(first)

    def one_input(data: bytes) -> None:
        path.write_bytes(data)
        with warnings.catch_warnings(), suppress(BigLPError):
            warnings.simplefilter("ignore")
            read(target, path)

    atheris.Setup([*sys.argv, str(first.parent)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
