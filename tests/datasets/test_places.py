"""Where data sets are kept."""

from __future__ import annotations

import numpy as np
import pytest

from paper import datasets
from paper.datasets.registry import cache_folder
from published import publish


@pytest.mark.parametrize("named", ["BIGLP_CACHE", "XDG_CACHE_HOME", None])
def test_cache_folder(monkeypatch, tmp_path, named):
    for name in ("BIGLP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    if named:
        monkeypatch.setenv(named, str(tmp_path / "c"))
    ends = {"BIGLP_CACHE": "c/datasets", "XDG_CACHE_HOME": "c/biglp/datasets"}
    assert cache_folder() == tmp_path / ends.get(named, ".cache/biglp/datasets")


def test_prepared_data_of_others(site, tmp_path, monkeypatch):
    rows, _ = publish(site, "susy")
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path / "theirs"))
    datasets.fetch("susy")
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("BIGLP_DATA", str(tmp_path / "theirs" / "datasets"))
    np.testing.assert_array_equal(datasets.load("susy").rows, rows)
    assert datasets.fetch("susy") == tmp_path / "theirs" / "datasets" / "susy"
