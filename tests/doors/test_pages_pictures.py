"""What is shown of a row as a picture: pixels, and files that stay below their folder."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from biglp._core import ParameterError
from biglp._labelling import Session
from label_tools import client_of, wanted


@pytest.fixture
def page_of(tmp_path):
    sessions = []

    def open_page(rows, **options):
        path = tmp_path / "rows.npy"
        if sparse.issparse(rows):
            path = tmp_path / "rows.npz"
            sparse.save_npz(path, rows)
        elif isinstance(rows, pa.Table):
            path = tmp_path / "rows.parquet"
            pq.write_table(rows, path)
        else:
            np.save(path, rows)
        sessions.append(Session(wanted(tmp_path, path, **options)))
        return client_of(sessions[-1])

    yield open_page
    for session in sessions:
        session.close()


def decoded(reply):
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png")
    image = pytest.importorskip("matplotlib.image")
    return np.rint(255 * image.imread(io.BytesIO(reply.content), format="png")).astype(np.uint8)


@pytest.mark.parametrize(
    ("shape", "size"), [("2x3", (2, 3)), ("3X2x3", (3, 2, 3)), ("3x2x2", (3, 2, 2))]
)
def test_pixels_come_back(page_of, shape, size):
    """Of three colours one pixel after the other, or one colour after the other."""
    images = np.random.default_rng(0).integers(0, 256, (4, *size)).astype(np.uint8)
    images[2].flat[:2] = 0, 255
    expected = np.moveaxis(images[2], 0, 2) if shape == "3x2x2" else images[2]
    reply = page_of(images.reshape(4, -1), shape=shape).get("/api/image/2")
    np.testing.assert_array_equal(decoded(reply).reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("row", "pixels"),
    [
        ([0.0, 1.0], [0, 255]),  # shares of full brightness
        ([0.0, 7.0], [0, 7]),  # bytes
        ([-3.0, 3.0], [0, 255]),  # neither: the smallest is black
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_brightness(page_of, row, pixels, kind):
    client = page_of(kind(np.array([row, row])), shape="1x2")
    assert decoded(client.get("/api/image/0")).ravel().tolist() == pixels


@pytest.mark.parametrize("kind", ["grey", "coloured", "planar", "not square", "measurements"])
def test_square_pictures_are_recognised(page_of, kind):
    rng = np.random.default_rng(0)
    grey = np.kron(load_digits().images[:100], np.ones((1, 3, 3)))
    coloured = grey[:, :, :, None] * rng.uniform(0.3, 1, (100, 1, 1, 3))
    rows, image = {
        "grey": (grey, grey[4]),
        "coloured": (coloured, coloured[4]),
        "planar": (np.moveaxis(coloured, 3, 1), coloured[4]),
        "not square": (grey[:, 1:], None),
        "measurements": (rng.normal(size=(100, 64)), None),
    }[kind]
    client = page_of(rows.reshape(100, -1))
    state = client.get("/api/state").json()
    if image is None:
        assert (state["kind"], state["image"]) == ("table", None)
        assert client.get("/api/image/4").status_code == 404
        return
    channels = 1 if kind == "grey" else 3
    assert state["image"] == {"height": 24, "width": 24, "channels": channels}
    seen = decoded(client.get("/api/image/4")).reshape(24, 24, -1)[:, :, :channels]
    np.testing.assert_array_equal(seen, np.rint(image).reshape(24, 24, channels))


SHOWN = {"a.png": b"png", "deep/b.JPG": b"jpg", "deep/../a.png": b"png", "near.png": b"png"}
NOT_SHOWN = ["../secret.png", "link.png", "/etc/passwd", "page.svg", "page.html", "none.png"]
NOT_SHOWN += ["deep", "", "a.png\0", None, "deep/../../secret.png", "x" * 5000]


@pytest.fixture
def folder(tmp_path):
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


def test_files_of_a_column_stay_below_their_folder(page_of, folder):
    paths = [*SHOWN, *NOT_SHOWN]
    columns = {"id": [f"r{row}" for row in range(len(paths))], "file": paths}
    columns["x"] = np.arange(len(paths)) % 5
    client = page_of(pa.table(columns), images=folder, reading={"drop": ("file", "id")})
    assert client.get("/api/state").json()["kind"] == "image"
    for row, path in enumerate(paths):
        reply = client.get(f"/api/image/{row}")
        content = client.get(f"/api/row/{row}").json()["content"]
        if path in SHOWN:
            assert reply.content == SHOWN[path]
            assert reply.headers["content-type"] == f"image/{'jpeg' if 'b' in path else 'png'}"
            assert content == {"kind": "image", "src": f"/api/image/{row}"}
        else:
            assert reply.status_code == 404
            assert content == {"kind": "text", "text": "(no picture)"}


@pytest.mark.parametrize("beside", [True, False], ids=["beside the rows", "in the rows"])
def test_paths_may_be_the_ids(page_of, folder, beside):
    table = pa.table({"file": [*SHOWN], "x": np.arange(float(len(SHOWN)))})
    pq.write_table(table, folder / "files.parquet")
    rows = np.arange(4.0 * len(SHOWN)).reshape(len(SHOWN), 4) if beside else table
    more = {"metadata": folder / "files.parquet"} if beside else {}
    client = page_of(rows, images=folder, id_column="file", **more)
    for row, content in enumerate(SHOWN.values()):
        assert client.get(f"/api/image/{row}").content == content


def test_what_is_refused(page_of, folder):
    for shape in ("10", "axb", "10x20x4", "0x5", "10x20x3x1"):
        with pytest.raises(ParameterError, match="no shape of a picture"):
            page_of(np.zeros((2, 200)), shape=shape)
    table = pa.table({"id": ["1", "2"], "x": [1.0, 2.0]})
    with pytest.raises(ParameterError, match="no column holds paths"):
        page_of(table, images=folder)
    with pytest.raises(ParameterError, match="is no folder"):
        page_of(table, images=folder / "none")
