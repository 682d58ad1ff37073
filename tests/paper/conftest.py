"""A server in the publishers' place, and small files in the shape of the real data sets."""

import numpy as np
import pytest

from paper import pages as data
from published import digits, site

__all__ = ["archives", "digits", "site"]


@pytest.fixture
def archives(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for stand_in in data.STAND_INS.values():
        truth = rng.integers(0, 10 if stand_in.file == "mnist.npz" else 3, 400)
        X = (rng.normal(size=(400, 6)) + 0.5 * truth[:, None]).astype(np.float32)
        np.savez(folder / stand_in.file, X=X, y=truth.astype(np.uint8))
    monkeypatch.setenv(data.VARIABLE, str(folder))
    return folder
