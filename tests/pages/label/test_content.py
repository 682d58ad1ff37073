"""Pictures: shapes, PNG files, and paths that stay below their folder."""

import io

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from biglp._core.errors import ParameterError
from biglp._labelling.view import ImageShape, Pictures, pixels, readable
from biglp._rows import as_source


def decoded(data):
    """The pixels of a PNG file, as matplotlib reads them."""
    image = pytest.importorskip("matplotlib.image")
    return np.rint(255 * image.imread(io.BytesIO(data), format="png")).astype(np.uint8)


@pytest.mark.parametrize("shape", [ImageShape(2, 3, 1), ImageShape(3, 2, 3), ImageShape(28, 28, 1)])
def test_pixels_come_back(shape):
    size = (shape.height, shape.width, shape.channels)
    image = np.random.default_rng(0).integers(0, 256, size).astype(np.uint8)
    image.flat[:2] = 0, 255
    found = decoded(pixels(image.reshape(1, -1), shape))
    np.testing.assert_array_equal(found.reshape(size), image)


def test_shares_of_brightness_sparse_rows_and_scaled_values():
    shape = ImageShape(1, 2, 1)
    assert decoded(pixels(np.array([[0.0, 1.0]]), shape)).ravel().tolist() == [0, 255]
    row = sparse.csr_array(np.array([[0.0, 7.0]]))
    assert decoded(pixels(row, shape)).ravel().tolist() == [0, 7]
    assert decoded(pixels(np.array([[-3.0, 3.0]]), shape)).ravel().tolist() == [0, 255]
    assert decoded(pixels(np.array([[np.nan, 1.0]]), shape)).ravel().tolist() == [0, 255]


def test_square_pictures_are_recognised():
    grey = np.kron(load_digits().images[:100], np.ones((1, 3, 3)))
    colours = np.random.default_rng(0).uniform(0.3, 1, (100, 1, 1, 3))
    coloured = grey[:, :, :, None] * colours
    planar = np.moveaxis(coloured, 3, 1)
    for images, shape in (
        (grey, ImageShape(24, 24, 1)),
        (coloured, ImageShape(24, 24, 3)),
        (planar, ImageShape(24, 24, 3, planar=True)),
        (grey[:, 1:], None),
    ):
        assert ImageShape.recognised(as_source(images.reshape(100, -1))) == shape


def test_colours_one_after_the_other():
    image = np.arange(12).reshape(2, 2, 3).astype(np.uint8)
    planar = np.moveaxis(image, 2, 0).reshape(1, -1)
    found = decoded(pixels(planar, ImageShape.parse("3x2x2", 12)))
    np.testing.assert_array_equal(found, image)


def test_measurements_are_no_pictures():
    rows = np.random.default_rng(0).normal(size=(10, 64))
    assert ImageShape.recognised(as_source(rows)) is None


def test_a_shape_that_is_given():
    assert ImageShape.parse("10x20", 200) == ImageShape(10, 20, 1)
    assert ImageShape.parse("10X20x3", 600) == ImageShape(10, 20, 3)
    assert ImageShape.parse("3x10x20", 600) == ImageShape(10, 20, 3, planar=True)
    for text in ("10", "axb", "10x20x4", "0x5", "10x20x3x1", ""):
        with pytest.raises(ParameterError, match="no shape of a picture"):
            ImageShape.parse(text, 200)
    with pytest.raises(ParameterError, match="200 pixels, but rows have 100"):
        ImageShape.parse("10x20", 100)


class TestPictures:
    @pytest.fixture
    def folder(self, tmp_path):
        inside = tmp_path / "pictures"
        (inside / "deep").mkdir(parents=True)
        (inside / "a.png").write_bytes(b"png")
        (inside / "deep" / "b.JPG").write_bytes(b"jpg")
        (inside / "page.svg").write_text("<svg onload='alert(1)'/>")
        (inside / "page.html").write_text("<script>")
        (tmp_path / "secret.png").write_bytes(b"secret")
        (inside / "link.png").symlink_to(tmp_path / "secret.png")
        (inside / "near.png").symlink_to(inside / "a.png")
        return inside

    def test_what_is_shown(self, folder):
        pictures = Pictures(folder.resolve(), "path")
        assert pictures.file("a.png").read_bytes() == b"png"
        assert pictures.file("deep/b.JPG").read_bytes() == b"jpg"
        assert pictures.file("deep/../a.png").read_bytes() == b"png"
        assert pictures.file("near.png").read_bytes() == b"png"

    @pytest.mark.parametrize(
        "path",
        [
            "../secret.png",
            "link.png",
            "/etc/passwd",
            "page.svg",
            "page.html",
            "none.png",
            "deep",
            "",
            "a.png\0",
            None,
            3,
            "deep/../../secret.png",
            "x" * 5000,
        ],
    )
    def test_what_is_not(self, folder, path):
        assert Pictures(folder.resolve(), "path").file(path) is None

    def test_the_column_is_found(self, folder):
        some = {"id": ["1", "2"], "file": [None, "deep/b.JPG"]}
        assert Pictures.find(folder, some).column == "file"
        with pytest.raises(ParameterError, match="no column holds paths"):
            Pictures.find(folder, {"id": ["1"]})
        with pytest.raises(ParameterError, match="is no folder"):
            Pictures.find(folder / "none", some)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (1.23456, "1.235"), (1234567, "1234567"), (np.float32(2), "2"), (True, "True")],
)
def test_values_for_people(value, text):
    assert readable(value) == text
