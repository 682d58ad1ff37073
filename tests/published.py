"""Small data sets in their publishers' formats, on a server in the publishers' place."""

import bz2
import gzip
from urllib.parse import urlsplit

import numpy as np
import pytest

from dataset_server import serving
from paper.datasets import download as transfer
from paper.datasets.registry import entry

RNG = np.random.default_rng(0)


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("BIGLP_DATA", raising=False)
    with serving() as made:
        monkeypatch.setenv("BIGLP_MIRROR", made.url)
        yield made


@pytest.fixture
def digits(site, tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    y = np.arange(300) % 10
    X = RNG.integers(256, size=(300, 784)).astype(np.uint8)
    np.savez(folder / "mnist.npz", X=X, y=y.astype(np.uint8))
    monkeypatch.setenv("BIGLP_DATA", str(folder))
    return X, y


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def csv_text(labels: np.ndarray, values: np.ndarray, header: str | None = None) -> bytes:
    lines = [header] if header else []
    for label, row in zip(labels, values, strict=True):
        lines.append(",".join(f"{value:.18e}" for value in (label, *row)))
    return zipped(("\n".join(lines) + "\n").encode())


def libsvm_text(labels: np.ndarray, values: np.ndarray) -> bytes:
    lines = []
    for label, row in zip(labels, values, strict=True):
        entries = (f"{index + 1}:{row[index]:.9g}" for index in np.flatnonzero(row))
        lines.append(f"{label} {' '.join(entries)} \n")
    return bz2.compress("".join(lines).encode())


def published(name: str, n: int = 40) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    known = entry(name)
    parts, rows, labels = [], [], []
    for _ in known.files:
        if known.text == "csv":
            y = RNG.integers(2, size=n)
            X = RNG.normal(size=(n, known.features)).astype(np.float32)
            extra = RNG.normal(size=(n, 1)) if name == "hepmass-all" else np.empty((n, 0))
            names = [f"f{i}" for i in range(known.features)] + ["mass"] * extra.shape[1]
            header = f"# label,{','.join(names)}" if known.header else None
            parts.append(csv_text(y, np.hstack([X, extra]), header))
        else:
            among = {"mnist8m": 10, "protein": 3, "gisette": 2}[name]
            y = RNG.integers(among, size=n)
            y[:4] = [*known.classes, *known.classes] if name != "gisette" else [0, 1, 0, 1]
            y = 2 * y - 1 if name == "gisette" else y
            X = RNG.integers(256, size=(n, known.features)) * (
                RNG.random((n, known.features)) < 0.2
            )
            X = X.astype(np.float32) / (1 if name == "mnist8m" else 256)
            parts.append(libsvm_text(y, X))
        chosen = np.isin(y, known.classes)
        rows.append(X[chosen])
        labels.append(y[chosen])
    return parts, np.concatenate(rows), np.concatenate(labels)


def publish(site, name: str) -> tuple[np.ndarray, np.ndarray]:
    parts, rows, labels = published(name)
    for file, content in zip(entry(name).files, parts, strict=True):
        site.files[urlsplit(file.urls[0]).path] = content
    return rows, labels
