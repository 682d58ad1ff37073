"""What the C library keeps of freed memory, and what it hands back."""

import ctypes
import os
import subprocess
import sys

import pytest

from biglp._core.memory import give_back, private_memory

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="needs the GNU C library",
)
PROGRAM = """
from resource import RUSAGE_SELF, getrusage
import numpy as np
from biglp._core.memory import freed_is_kept

def new_pages():
    before = getrusage(RUSAGE_SELF).ru_minflt
    for _ in range(40):
        np.ones(1 << 17)  # 1 MB, freed at once
    return getrusage(RUSAGE_SELF).ru_minflt - before

first = new_pages()
with freed_is_kept():
    with freed_is_kept():  # another thread of the worker, say
        new_pages()
    kept = new_pages()
print(first, kept, new_pages())
"""


def test_what_was_freed_is_handed_back():
    pieces = [bytes(100_000) + bytes([i % 256]) for i in range(1500)]
    del pieces[:-1]  # the last one lies above the others, and keeps them from going by themselves
    before = private_memory()
    give_back()
    assert before - private_memory() > 50 << 20
    assert len(pieces) == 1


def test_a_worker_of_dask_keeps_freed_memory_for_the_next_block_and_no_longer():
    settings = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}  # as Dask starts its workers
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)
    first, kept, after = map(int, done.stdout.split())
    assert kept < first / 20
    assert after > first / 2


def test_only_what_the_process_was_started_with_counts():
    name = "MALLOC_TRIM_THRESHOLD_"
    settings = {key: value for key, value in os.environ.items() if key != name}
    program = (
        f"import os; os.environ[{name!r}] = '65536'  # Dask leaves it behind like this\n"
        "from biglp._core.memory import freed_is_kept, trim_threshold\n"
        "with freed_is_kept(): print(trim_threshold())"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "None"
