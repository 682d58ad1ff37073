"""Which rows are pictures, and PNG files that others can read."""

import base64
import io

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp._report.charts import data_uri, png
from biglp._report.rows import Pictures, side_of


def smooth(n, side, channels, rng):
    """Coloured squares of light and dark that change slowly."""
    steps = np.linspace(0, 2, side)
    phases = rng.uniform(0, 6, (n, channels, 1, 1))
    waves = np.sin(phases + 2 * steps[:, None] + steps) * rng.uniform(0.5, 1, (n, channels, 1, 1))
    return waves + rng.normal(0, 0.02, waves.shape)


def test_digits_are_grey_squares():
    found = Pictures.of(load_digits().data)
    assert (found.side, found.channels, found.low, found.high) == (8, 1, 0.0, 16.0)


@pytest.mark.parametrize("planar", [True, False])
def test_colours_in_either_order(planar):
    waves = smooth(50, 10, 3, np.random.default_rng(0))
    rows = (waves if planar else np.moveaxis(waves, 1, 3)).reshape(50, -1)
    found = Pictures.of(rows)
    assert (found.side, found.channels, found.planar) == (10, 3, planar)


def test_tables_and_embeddings_are_none():
    rng = np.random.default_rng(0)
    assert Pictures.of(rng.normal(size=(100, 64))) is None
    assert Pictures.of(rng.random((100, 144)) * rng.exponential(size=144)) is None
    assert Pictures.of(np.zeros((10, 64))) is None
    assert Pictures.of(rng.normal(size=(100, 63))) is None
    assert Pictures.of(np.empty((0, 64))) is None


def test_sides():
    assert side_of(784) == 28
    assert side_of(3072, 3) == 32
    assert side_of(25) is None  # too small to be one
    assert side_of(785) is None


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 4)])
def test_png_is_read_back(shape):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(png(pixels)))), pixels)


def test_large_pictures_are_made_smaller():
    image = pytest.importorskip("PIL.Image")
    rows = smooth(20, 200, 1, np.random.default_rng(0)).reshape(20, -1)
    made = base64.b64decode(Pictures.of(rows).draw(rows[0]).partition(",")[2])
    assert image.open(io.BytesIO(made)).size == (40, 40)
    assert data_uri(np.zeros((1, 1))).startswith("data:image/png;base64,")
