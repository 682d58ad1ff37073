"""Files that appear whole or not at all, and headers of .npy files."""

from __future__ import annotations

import os

import numpy as np
import pytest

from biglp._core.errors import OutputError
from biglp._files.local import atomic_write, npy_header


def interrupted(file) -> None:
    file.write(b"second")
    raise KeyboardInterrupt


def test_atomic_write(tmp_path):
    path = tmp_path / "x.bin"
    with atomic_write(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as file:
        interrupted(file)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    with (
        pytest.raises(OutputError, match=r"none.x\.bin could not be written: No such file"),
        atomic_write(tmp_path / "none" / "x.bin"),
    ):
        pass
    mask = os.umask(0o027)
    try:
        with atomic_write(path) as file:
            file.write(b"third")
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("dtype", ["<f4", "<U20", "|b1", "<i8"])
@pytest.mark.parametrize("shape", [(3,), (10**12, 10**6)])
def test_npy_header(tmp_path, dtype, shape):
    header = npy_header(np.dtype(dtype), shape)
    assert len(header) == 128
    (tmp_path / "x.npy").write_bytes(header)
    with open(tmp_path / "x.npy", "rb") as file:
        assert np.lib.format.read_magic(file) == (1, 0)
        assert np.lib.format.read_array_header_1_0(file) == (shape, False, np.dtype(dtype))
