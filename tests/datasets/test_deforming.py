"""Deformed images: the same whatever the block, true to their formula, still the same digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates
from sklearn.datasets import load_digits

from biglp._core.errors import BadRowsError, LabelError, ParameterError
from paper import datasets
from paper.datasets import deforming
from paper.datasets.deforming import Deformer


def discs(n: int = 30, side: int = 28) -> np.ndarray:
    """Rings of several sizes and places, with soft edges."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:side, :side]
    out = []
    for _ in range(n):
        centre, radius = side / 2 + rng.normal(size=2), side * rng.uniform(0.15, 0.3)
        distance = np.hypot(y - centre[0], x - centre[1])
        out.append(255 * np.clip(2 - np.abs(distance - radius), 0, 1))
    return np.rint(out).astype(np.uint8).reshape(n, -1)


IMAGES = discs()
WHOLE = Deformer(IMAGES, seed=5).read(0, 400)


@settings(max_examples=40, deadline=None)
@given(start=st.integers(0, 399), n=st.integers(1, 200), block=st.sampled_from([1, 3, 64, 128]))
def test_any_cut_gives_the_same_rows(start, n, block):
    old, deforming.BLOCK_ROWS = deforming.BLOCK_ROWS, block
    try:
        stop = min(start + n, 400)
        found = Deformer(IMAGES, seed=5).read(start, stop)
    finally:
        deforming.BLOCK_ROWS = old
    np.testing.assert_array_equal(found, WHOLE[start:stop])


def test_rows_do_not_change_between_versions():
    """A file made today must be the file made tomorrow, on any machine."""
    sums = WHOLE[[30, 100, 399]].astype(int).sum(axis=1)
    assert sums.tolist() == [19679, 42937, 36302]


@pytest.mark.parametrize("side", [28, 9])
def test_agrees_with_interpolation(side):
    images = discs(side=side)
    deformer = Deformer(images, seed=2)
    found = deformer.read(30, 90).reshape(-1, side, side)
    field = deformer._coefficients(30, 90) @ deformer._functions / 8192
    field = field.reshape(2, -1, side, side)
    grid = np.mgrid[:side, :side]
    for row in range(60):
        image = images[row % 30].reshape(side, side).astype(float)
        expected = map_coordinates(
            image, grid + field[:, row], order=1, cval=0, mode="grid-constant"
        )
        assert np.abs(found[row] - expected).max() < 5  # 1/128 of a pixel, at a full edge of 255


def test_fields_are_those_of_the_formula():
    """Without waves the field is a translation and a linear map about the centre."""
    deformer = Deformer(IMAGES, seed=3)
    coefficients = deformer._coefficients(30, 4030).reshape(2, -1, 19)
    shift = coefficients[:, :, 0] / 128
    linear = coefficients[:, :, 1:3].transpose(1, 0, 2) / 4096 + np.eye(2)  # (rows, to, from)
    assert np.abs(shift).max() == pytest.approx(deforming.SHIFT, abs=0.02)
    assert shift.std() == pytest.approx(deforming.SHIFT / np.sqrt(3), rel=0.05)
    # Rotation and shear keep areas; what is left of the determinant are the two stretches.
    area = np.log(np.linalg.det(linear))
    assert np.abs(area).max() < 2 * deforming.STRETCH + 0.01
    turn = np.arctan2(linear[:, 1, 0], linear[:, 0, 0])
    assert np.abs(turn).max() == pytest.approx(deforming.TURN, abs=0.01)
    assert np.abs(np.corrcoef(np.vstack([shift, turn, area])) - np.eye(4)).max() < 0.1
    waves = coefficients[:, :, 3:] / 128
    assert np.abs(waves.mean(axis=(0, 1))).max() < 0.05
    assert (np.diff(waves.std(axis=(0, 1)).reshape(4, 4), axis=1) < 0).all()


def test_classes_survive():
    """Deformed digits are recognised by their nearest neighbours among the originals."""
    from sklearn.neighbors import KNeighborsClassifier

    X, y = load_digits(return_X_y=True)
    large = np.kron(X.reshape(-1, 8, 8), np.ones((3, 3))) * 15.9
    images = large.astype(np.uint8).reshape(len(X), -1)
    deformed = Deformer(images, seed=0).read(len(X), 2 * len(X))
    known = KNeighborsClassifier(1).fit(images, y)
    assert known.score(deformed, y) > 0.85
    assert (deformed != images).any(axis=1).all()


def test_files(tmp_path):
    labels = np.arange(30) % 3
    paths = datasets.deform(IMAGES.reshape(30, 28, 28), labels, 400, 5, tmp_path / "more.npy")
    np.testing.assert_array_equal(np.load(paths["rows"]), WHOLE)
    np.testing.assert_array_equal(np.load(paths["labels"]), labels[np.arange(400) % 30])
    np.testing.assert_array_equal(WHOLE[:30], IMAGES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["more.labels.npy", "more.npy"]


@pytest.mark.parametrize(
    ("images", "labels", "n_rows", "name", "error", "message"),
    [
        (IMAGES[:, :783], np.zeros(30), 9, "x.npy", BadRowsError, "must be square"),
        (IMAGES.astype(float), np.zeros(30), 9, "x.npy", BadRowsError, "uint8"),
        (IMAGES[:0], np.zeros(0), 9, "x.npy", BadRowsError, "found shape"),
        (IMAGES, np.zeros(29), 9, "x.npy", LabelError, "29 labels for 30 images"),
        (IMAGES, np.zeros(30), 0, "x.npy", ParameterError, "n_rows=0"),
        (IMAGES, np.zeros(30), 9, "x.npz", ParameterError, "must end in .npy"),
    ],
)
def test_refused(tmp_path, images, labels, n_rows, name, error, message):
    with pytest.raises(error, match=message):
        datasets.deform(images, labels, n_rows, 0, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
