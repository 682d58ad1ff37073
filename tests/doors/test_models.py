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


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a good model file."""
    X, y, _ = blobs()
    path = tmp_path_factory.mktemp("models") / "whole.model"
    model().fit(X, y).save(path)
    return path.read_bytes()


class TestModelFiles:
    @pytest.mark.parametrize("bandwidth", [0.3, 3.0])  # with and without mixing of the sums
    @pytest.mark.parametrize("factor", FACTORS)
    def test_a_saved_model_predicts_the_same(self, factor, bandwidth, tmp_path):
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
        "names", [["a", "bé"], [3, 5], [0.0, 1.0], [False, True], np.array([1, "b"], dtype=object)]
    )
    def test_classes_survive(self, names, tmp_path):
        X, codes, _ = blobs(classes=2)
        y = np.array([None if code == -1 else names[code] for code in codes], dtype=object)
        fitted = model().fit(X, y)
        fitted.save(tmp_path / "a.model")
        classes = LowRankLabelPropagation.load(tmp_path / "a.model").classes_
        assert classes.tolist() == fitted.classes_.tolist()
        assert classes.dtype == fitted.classes_.dtype

    def test_classes_that_are_no_text_and_no_numbers_are_refused(self, tmp_path):
        X, codes, _ = blobs(classes=2)
        days = np.datetime64("2020-01-01") + codes.astype("timedelta64[D]")
        y = np.where(codes < 0, np.datetime64("NaT", "D"), days)
        with pytest.raises(ModelFileError, match=r"numbers or text can be saved.* pickle"):
            model().fit(X, y).save(tmp_path / "a.model")
        assert not list(tmp_path.iterdir())

    def refused(self, content, path, message):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=message) as caught:
            LowRankLabelPropagation.load(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
    def test_a_truncated_file_is_refused(self, share, whole, tmp_path):
        part = whole[: int(share * len(whole))]
        self.refused(part, tmp_path / "a.model", r"not a whole biglp model .* fit and save it anew")

    def test_a_damaged_file_is_refused_wherever_the_damage_is(self, whole, tmp_path):
        rng = np.random.default_rng(0)
        X, _, _ = blobs()
        good = LowRankLabelPropagation.load(self.written(whole, tmp_path)).predict_proba(X)
        refused = 0
        for place in rng.integers(len(whole), size=60):
            damaged = bytearray(whole)
            damaged[place] ^= 0xFF
            path = self.written(bytes(damaged), tmp_path)
            try:
                loaded = LowRankLabelPropagation.load(path)
            except ModelFileError:
                refused += 1
            else:  # a byte of no meaning, such as a time stamp: the model is the same
                np.testing.assert_array_equal(loaded.predict_proba(X), good)
        assert refused > 40

    def written(self, content, folder):
        path = folder / "b.model"
        path.write_bytes(content)
        return path

    @pytest.mark.parametrize(
        "content", [b"", b"not a model", pickle.dumps([1, 2]), b"PK\x03\x04" + b"x" * 50]
    )
    def test_a_foreign_file_is_refused(self, content, tmp_path):
        self.refused(content, tmp_path / "a.model", r"not a whole biglp model")

    def test_a_foreign_archive_is_refused(self, tmp_path):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("header.json", json.dumps({"format": "other"}))
        self.refused(buffer.getvalue(), tmp_path / "a.model", r"not one that biglp wrote")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"version": 1},
                r"model format 1, and this biglp reads \d+; fit again and save it anew",
            ),
            ({"views": [{"name": "rows", "factor": "quantum"}]}, r"not a whole biglp model"),
            ({"classes": None}, r"not a whole biglp model"),
            ({"n_features": None, "arrays": ["missing"]}, r"not a whole biglp model"),
            ({"dtype": "no such type"}, r"not a whole biglp model"),
            # A type that NumPy knows, with a warning that it will not for long.
            ({"classes": {"dtype": "a5", "values": ["a", "b"]}}, r"not a whole biglp model"),
            ({"classes": {"dtype": 7, "values": ["a", "b"]}}, r"not a whole biglp model"),
        ],
    )
    def test_a_header_of_another_kind_is_refused(self, change, message, whole, tmp_path):
        buffer = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(buffer, "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if name == "header.json":
                    content = json.dumps(json.loads(content) | change).encode()
                new.writestr(name, content)
        self.refused(buffer.getvalue(), tmp_path / "a.model", message)

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(ModelFileError, match=r"there is no model file .*none\.model; save one"):
            LowRankLabelPropagation.load(tmp_path / "none.model")

    def test_no_pickle_is_in_the_file(self, whole):
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            names = archive.namelist()
            arrays = [name for name in names if name.endswith(".npy")]
            assert set(names) - set(arrays) == {"header.json"}
            for name in arrays:
                np.load(io.BytesIO(archive.read(name)), allow_pickle=False)

    def test_a_model_file_is_small(self, whole):
        assert len(whole) < 20_000


def changed(whole, name, change):
    """The bytes of a model file in which one array is another."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if member == name:
                buffer = io.BytesIO()
                np.save(buffer, change(np.load(io.BytesIO(content))))
                content = buffer.getvalue()
            new.writestr(member, content)
    return out.getvalue()


class TestHostileFiles:
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_numbers_that_are_none(self, whole, bad, tmp_path):
        def spoil(array):
            array.flat[0] = bad
            return array

        path = tmp_path / "bad.model"
        path.write_bytes(changed(whole, "rows.factor.landmarks.npy", spoil))
        with pytest.raises(
            ModelFileError, match=r"rows.factor.landmarks holds NaN, infinity or numbers"
        ):
            LowRankLabelPropagation.load(path)

    def test_an_archive_that_would_fill_the_memory(self, whole, tmp_path):
        path = tmp_path / "bomb.model"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            with zipfile.ZipFile(io.BytesIO(whole)) as old:
                archive.writestr("header.json", old.read("header.json"))
            with archive.open("rows.factor.landmarks.npy", "w") as member:
                for _ in range(300):
                    member.write(bytes(1 << 20))
        with pytest.raises(ModelFileError, match=r"would take 300 MB unpacked.*at most 256 MB"):
            LowRankLabelPropagation.load(path)

    def test_a_type_that_is_no_python(self, whole, tmp_path):
        """NumPy parses it, and fails with a SyntaxError."""
        path = tmp_path / "bad.model"
        with (
            zipfile.ZipFile(path, "w") as archive,
            zipfile.ZipFile(io.BytesIO(whole)) as old,
        ):
            for name in old.namelist():
                content = old.read(name)
                archive.writestr(name, content.replace(b'"dtype": "<f8"', b'"dtype": "<07"'))
        with pytest.raises(ModelFileError, match="is not a whole biglp model file"):
            LowRankLabelPropagation.load(path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files on this system")
    def test_a_device_and_a_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
            with pytest.raises(ModelFileError, match="is no regular file"):
                LowRankLabelPropagation.load(path)
