"""Data frames, files with named columns and files of labels, in the estimators."""

import numpy as np
import pandas as pd
import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import DriftWarning, LabelError, LabelWarning, ParameterError
from helpers import blobs, model

N = 240
COLUMNS = ["a", "b", "c"]
NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=N)
    frame = pd.DataFrame(
        {
            "id": [f"k{i}" for i in range(N)],
            "when": pd.to_datetime("2024-01-01") + pd.to_timedelta(300 * truth, unit="D"),
            "plan": np.where(rng.random(N) < 0.9, np.array(["a", "b"])[truth], None),
            "size": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N) + 3 * truth),
        }
    )
    return frame, truth, np.where(np.arange(N) % 6 == 0, truth, -1)


def given(kind, frame, folder):
    if kind == "frame":
        return frame
    path = folder / f"{len(list(folder.iterdir()))}.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_new_rows_that_are_unlike_the_training_rows(table, tmp_path, kind):
    frame, _, y = table
    model = LowRankLabelPropagation(random_state=0).fit(frame, y)
    model.predict(given(kind, frame[::2], tmp_path))  # warnings are errors here
    other = given(kind, frame.assign(plan="gold", size=frame["size"] + 1000), tmp_path)
    with pytest.warns(DriftWarning, match=r"unknown categories in 'plan' \('gold'\)") as caught:
        model.predict(other)
    assert "outside the range of 'size'" in str(caught[0].message)
    assert "far from all training rows" in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.warns(DriftWarning):
        model.predict_proba(other)
    model.predict(given(kind, frame[:10].assign(plan="gold"), tmp_path))  # too few to say


def test_frames_as_they_are(table, tmp_path):
    frame, truth, y = table
    model = LowRankLabelPropagation(random_state=0).fit(frame, y)
    assert (model.transduction_ == truth).mean() > 0.95
    assert list(model.report_["left_out_columns"]) == ["id"]
    assert model.n_features_in_ == 4
    again = LowRankLabelPropagation(random_state=0).fit(given("parquet", frame, tmp_path), y)
    np.testing.assert_array_equal(again.label_distributions_, model.label_distributions_)
    model.save(tmp_path / "model")
    loaded = LowRankLabelPropagation.load(tmp_path / "model")
    mixed = frame[["size", "plan", "when"]].assign(more=1.0)  # another order, one column more
    np.testing.assert_array_equal(loaded.predict_proba(mixed), model.predict_proba(frame))
    mixed.loc[0, "plan"] = "new"
    assert loaded.predict(mixed).shape == (N,)
    measured = np.where(np.arange(N) % 4 == 0, truth * 2.0, np.nan)
    found = LowRankLabelPropagationRegressor(random_state=0).fit(frame, measured)
    assert np.abs(found.predict(frame) - truth * 2.0).mean() < 0.3


def test_frames_of_numbers_are_arrays_unless_a_column_is_none():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(N, 3)) + np.arange(N)[:, None] % 2, columns=COLUMNS)
    y = np.where(np.arange(N) % 5 == 0, np.arange(N) % 2, -1)
    plain = LowRankLabelPropagation().fit(frame, y)
    as_array = LowRankLabelPropagation().fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(plain.label_distributions_, as_array.label_distributions_)
    without = LowRankLabelPropagation().fit(frame.assign(**{"Unnamed: 0": np.arange(N)}), y)
    assert without.report_["left_out_columns"] == {"Unnamed: 0": "it counts the rows"}
    np.testing.assert_array_equal(without.label_distributions_, plain.label_distributions_)
    assert plain.predict(frame.assign(c=1.0)).shape == (N,)  # new rows need not vary


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_names_of_features_after_fit_and_after_load(kind, tmp_path):
    X, y, _ = blobs(features=3)
    frame = pd.DataFrame(X, columns=COLUMNS)
    fitted = model().fit(given(kind, frame, tmp_path), y)
    fitted.save(tmp_path / "m.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "m.biglp")
    for found in (fitted, loaded):
        assert (found.feature_names_in_.tolist(), found.n_features_in_) == (COLUMNS, 3)
    np.testing.assert_array_equal(loaded.predict_proba(frame), fitted.predict_proba(frame))
    other = frame[["c", "a", "b"]]
    if kind == "frame":  # plain numbers are an array, as for other estimators
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(other)
    else:  # columns of a table are known by their names
        np.testing.assert_array_equal(loaded.predict_proba(other), fitted.predict_proba(frame))
    fitted.fit(X, y).save(tmp_path / "m.biglp")
    for found in (fitted, LowRankLabelPropagation.load(tmp_path / "m.biglp")):
        assert (hasattr(found, "feature_names_in_"), found.n_features_in_) == (False, 3)


@pytest.fixture
def labelled_rows(tmp_path):
    X, y, truth = blobs(n=300, labelled=15)
    frame = pd.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])])
    frame["key"] = [f"K{number}" for number in range(300)]
    frame["kind"] = np.where(y < 0, None, NAMES[y])
    frame.to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet", X, np.where(y < 0, "", NAMES[y]), NAMES[truth]


def small_model(**more):
    return LowRankLabelPropagation(engine="serial", n_landmarks=40, random_state=0, **more)


def test_labels_in_a_column_and_in_files(labelled_rows, tmp_path):
    path, X, y, truth = labelled_rows
    named = {"label_column": "kind", "id_column": "key"}
    expected = small_model().fit(X, y).transduction_
    np.testing.assert_array_equal(small_model(**named).fit(path).transduction_, expected)
    assert (small_model(**named).suggest_first(path, 5) == small_model().suggest_first(X, 5)).all()
    known = np.flatnonzero(y != "")
    labels = tmp_path / "labels.csv"
    labels.write_text("row,label\n" + "".join(f"{row},{y[row]}\n" for row in known))
    found = small_model().fit(X, labels, sample_weight=np.ones(300))
    np.testing.assert_array_equal(found.transduction_, expected)
    y[:10] = truth[:10]
    expected = small_model().fit(X, y).transduction_
    labels.write_text("key,label\n" + "".join(f"K{row},{truth[row]}\n" for row in range(10)))
    for files in (labels, [str(labels)] * 2):
        found = small_model(**named).fit(path, files)
        np.testing.assert_array_equal(found.transduction_, expected)
    labels.write_text("key,label\nK1,ant\nnix,bee\n")
    with pytest.warns(LabelWarning, match="1 IDs are those of no row"):
        small_model(**named).fit(path, labels)


def test_labels_that_are_not_said_well_are_refused(labelled_rows):
    path, X, y, _ = labelled_rows
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "kind": ["x", None, "y"]})
    for options, given, error, message in (
        ({"label_column": "kind"}, (path, y), ParameterError, "y holds the labels"),
        ({"id_column": "key"}, (X, y), ParameterError, "X is in memory"),
        ({"label_column": "nix"}, (path,), ParameterError, "no column 'nix'"),
        ({}, (X,), LabelError, "y to be passed"),
        ({}, (frame, "kind"), ParameterError, r"is a column of X; give .* y=X\['kind'\]"),
    ):
        with pytest.raises(error, match=message):
            small_model(**options).fit(*given)
