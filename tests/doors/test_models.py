"""Model files: what survives, what is refused, and what is in them."""

import io
import json
import os
import pickle
import warnings
import zipfile

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import DegreeWarning, ModelFileError, UnreachedRowsWarning
from helpers import blobs, model

FACTORS = ("anchors", "nystrom", "linear", "glnp")
LANDMARKS = "rows.factor.landmarks"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    X, y, _ = blobs()
    path = tmp_path_factory.mktemp("models") / "whole.model"
    model().fit(X, y).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("bandwidth", [0.3, 3.0])  # with and without mixing of the sums
@pytest.mark.parametrize("factor", FACTORS)
def test_a_saved_model_predicts_the_same(factor, bandwidth, tmp_path):
    X, y, _ = blobs(n=300, dtype="float32")
    fitted = model(factor=factor, n_landmarks=12, bandwidth=bandwidth, scaling="standard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (UnreachedRowsWarning, DegreeWarning))
        fitted.fit(X[:250], y[:250])
    fitted.save(tmp_path / "a.model")
    loaded = LowRankLabelPropagation.load(str(tmp_path / "a.model"))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.report_ == fitted.report_
    assert loaded.n_features_in_ == 5
    assert [path.name for path in tmp_path.iterdir()] == ["a.model"]


@pytest.mark.parametrize(
    "names", [["a", "bé"], [3, 5], [0.0, 1.0], [False, True], [1, "b"], "days"]
)
def test_classes_survive(names, tmp_path):
    X, codes, _ = blobs(classes=2)
    if names == "days":
        days = np.datetime64("2020-01-01") + codes.astype("timedelta64[D]")
        y = np.where(codes < 0, np.datetime64("NaT", "D"), days)
        with pytest.raises(ModelFileError, match=r"numbers or text can be saved.* pickle"):
            model().fit(X, y).save(tmp_path / "a.model")
        assert not list(tmp_path.iterdir())
        return
    y = np.array([None if code == -1 else names[code] for code in codes], dtype=object)
    fitted = model().fit(X, y)
    fitted.save(tmp_path / "a.model")
    loaded = LowRankLabelPropagation.load(tmp_path / "a.model")
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert loaded.predict(X[:5]).dtype == fitted.transduction_.dtype


def test_no_pickle_is_in_the_file_and_it_is_small(whole):
    assert len(whole) < 20_000
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        arrays = [name for name in archive.namelist() if name.endswith(".npy")]
        assert {*archive.namelist()} - {*arrays} == {"header.json"}
        for name in arrays:
            np.load(io.BytesIO(archive.read(name)), allow_pickle=False)


# Files that are damaged, foreign or hostile -------------------------------------------------------


def changed(whole, changes):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, changes.get(name, lambda content: content)(old.read(name)))
    return out.getvalue()


def header(change):
    edit = lambda content: json.dumps(json.loads(content) | change).encode()  # noqa: E731
    return lambda whole: changed(whole, {"header.json": edit})


def first_number(bad):
    def edit(content):
        array, buffer = np.load(io.BytesIO(content)), io.BytesIO()
        array.flat[0] = bad
        np.save(buffer, array)
        return buffer.getvalue()

    return lambda whole: changed(whole, {f"{LANDMARKS}.npy": edit})


def bomb(whole):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        with zipfile.ZipFile(io.BytesIO(whole)) as old:
            archive.writestr("header.json", old.read("header.json"))
        archive.writestr(f"{LANDMARKS}.npy", bytes(300 << 20))
    return out.getvalue()


def foreign_archive(_):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("header.json", json.dumps({"format": "other"}))
    return out.getvalue()


NOT_WHOLE = "not a whole biglp model"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *[
            (lambda whole, s=share: whole[: int(s * len(whole))], f"{NOT_WHOLE} .* fit and save it")
            for share in (0.0, 0.1, 0.5, 0.99)
        ],
        *[
            (lambda _, c=content: c, NOT_WHOLE)
            for content in (b"not a model", pickle.dumps([1, 2]), b"PK\x03\x04" + b"x" * 50)
        ],
        (foreign_archive, "not one that biglp wrote"),
        (header({"version": 1}), r"model format 1, and this biglp reads \d+; fit again and save"),
        (header({"views": [{"name": "rows", "factor": "quantum"}]}), NOT_WHOLE),
        (header({"classes": None}), NOT_WHOLE),
        (header({"n_features": None, "arrays": ["missing"]}), NOT_WHOLE),
        # A type that NumPy knows, with a warning that it will not for long.
        (header({"classes": {"dtype": "a5", "values": ["a", "b"]}}), NOT_WHOLE),
        (header({"classes": {"dtype": 7, "values": ["a", "b"]}}), NOT_WHOLE),
        (first_number(np.nan), f"{LANDMARKS} holds NaN, infinity or numbers"),
        (first_number(np.inf), f"{LANDMARKS} holds NaN, infinity or numbers"),
        (bomb, "would take 300 MB unpacked.*at most 256 MB"),
    ],
)
def test_what_is_no_model_is_refused(damage, message, whole, tmp_path):
    path = tmp_path / "a.model"
    path.write_bytes(damage(whole))
    with pytest.raises(ModelFileError, match=message) as caught:
        LowRankLabelPropagation.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files on this system")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        with pytest.raises(ModelFileError, match="is no regular file"):
            LowRankLabelPropagation.load(path)
    with pytest.raises(ModelFileError, match=r"there is no model file .*none\.model; save one"):
        LowRankLabelPropagation.load(tmp_path / "none.model")
