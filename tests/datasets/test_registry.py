"""What is known about each data set."""

from __future__ import annotations

import pytest

from biglp._core.errors import ParameterError
from paper import datasets
from paper.datasets.registry import entry, mirrored


def test_registry_is_sound():
    assert {"hepmass", "susy", "mnist8m", "protein", "gisette", "sim100m"} <= set(datasets.names())
    for name in datasets.names():
        known = entry(name)
        assert known.licence
        assert known.citation
        assert bool(known.files) + bool(known.simulation) + bool(known.deformed_from) == 1
        for file in known.files:
            assert all(url.startswith("https://") for url in file.urls)
            assert all(url.endswith(f"/{file.name}") for url in file.urls)
            assert file.sha256 is None or len(file.sha256) == 64
    # 60,000 digits of MNIST, 6,265 of them 7 and 5,949 of them 9, in 135 versions each.
    assert entry("mnist8m").rows == 135 * (6265 + 5949)


def test_unknown_name():
    with pytest.raises(ParameterError, match=r"there is no data set 'suzy'.*mean 'susy'"):
        datasets.load("suzy")


def test_mirror():
    url = "https://archive.ics.uci.edu/ml/x.gz"
    assert mirrored(url, "http://localhost:1/m/") == "http://localhost:1/m/ml/x.gz"
    with pytest.raises(ParameterError, match="must begin with http"):
        mirrored(url, "ftp://x")
