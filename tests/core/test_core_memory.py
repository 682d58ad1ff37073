"""Amounts of memory: read from text, written for people, measured."""

import subprocess
import sys

import numpy as np
import pytest

from biglp._core.errors import ParameterError
from biglp._core.memory import (
    PeakMemory,
    available_memory,
    format_bytes,
    free_gpu_memory,
    parse_memory,
    private_memory,
)

GB = 2**30


@pytest.mark.parametrize(
    ("given_memory", "expected"),
    [
        ("4GB", 4 * GB),
        ("4 gb", 4 * GB),
        ("0.5GiB", GB // 2),
        ("512MB", 512 * 2**20),
        ("512 MiB", 512 * 2**20),
        ("10k", 10 * 2**10),
        ("2T", 2 * 2**40),
        ("123", 123),
        (4096, 4096),
        (1e6, 10**6),
        (np.int64(77), 77),
    ],
)
def test_amounts_of_memory(given_memory, expected):
    assert parse_memory(given_memory) == expected


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "lots",
        "-4GB",
        "4 XB",
        "4GBB",
        "1.2.3GB",
        "0",
        0,
        -1,
        True,
        None,
        np.nan,
        np.inf,
        [],
        "GB",
    ],
)
def test_what_is_not_an_amount_of_memory_is_refused(bad):
    with pytest.raises(ParameterError, match=r"memory=.* is not an amount of memory; use 'auto'"):
        parse_memory(bad)


def test_automatic_memory_is_half_of_what_is_free():
    free = available_memory()
    assert free >= 2**26
    assert parse_memory("auto") == pytest.approx(free // 2, rel=0.5)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1536, "1.5 KB"),
        (3 * GB, "3 GB"),
        (1010 * 2**20, "1010 MB"),
        (2**50, "1024 TB"),
    ],
)
def test_bytes_are_written_for_people(amount, text):
    assert format_bytes(amount) == text


MEASURED = """
import sys
import numpy as np
from biglp._core.memory import private_memory
before = private_memory()
array = np.ones(2**23)
grown = private_memory() - before
array.tofile(sys.argv[1])
before = private_memory()
np.memmap(sys.argv[1], mode="r").sum()
print(grown, private_memory() - before)
"""


def test_private_memory_counts_arrays_and_leaves_out_file_pages(tmp_path):
    """In a process of its own: others give memory back at times of their own."""
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "rows")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    array, pages = map(int, done.stdout.split())
    assert array == pytest.approx(2**26, rel=0.1)
    assert pages < 2**24


def test_the_peak_is_seen_while_it_lasts():
    with PeakMemory() as memory:
        before = memory.peak
        np.ones(2**24).sum()
    assert memory.peak - before > 2**26


def test_a_process_that_has_ended_uses_no_memory():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert private_memory(process.pid) == 0


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
def test_a_processor_has_no_memory_of_a_card(device):
    assert free_gpu_memory(device) is None


def test_memory_that_torch_keeps_for_later_counts_as_free(monkeypatch):
    class Cuda:
        mem_get_info = staticmethod(lambda device: (5 * GB, 80 * GB))
        memory_reserved = staticmethod(lambda device: 4 * GB)
        memory_allocated = staticmethod(lambda device: 1 * GB)

    class Torch:
        cuda = Cuda

    monkeypatch.setitem(sys.modules, "torch", Torch)
    assert free_gpu_memory("cuda:1") == free_gpu_memory("torch:cuda") == 8 * GB
