"""Data frames, files with named columns and files of labels, in the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BadRowsError, DriftWarning, LabelError, LabelWarning, ParameterError
from helpers import blobs, model

N = 240


@pytest.fixture(scope="module")
def table():
    """A table with an ID, a date, categories and holes, and the classes it tells."""
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
    shown = np.where(np.arange(N) % 6 == 0, truth, -1)
    return frame, truth, shown


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_new_rows_that_are_unlike_the_training_rows(table, tmp_path, kind):
    frame, _, y = table
    model = LowRankLabelPropagation(random_state=0).fit(frame, y)

    def given(rows):
        if kind == "frame":
            return rows
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.{kind}"
        rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
        return str(path)

    model.predict(given(frame[::2]))  # warnings are errors here
    other = frame.assign(plan="gold", size=frame["size"] + 1000)
    with pytest.warns(DriftWarning, match=r"unknown categories in 'plan' \('gold'\)") as caught:
        model.predict(given(other))
    assert "outside the range of 'size'" in str(caught[0].message)
    assert "far from all training rows" in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.warns(DriftWarning):
        model.predict_proba(given(other))
    model.predict(given(other[:10]))  # too few to say


def test_frames_as_they_are(table, tmp_path):
    frame, truth, y = table
    model = LowRankLabelPropagation(random_state=0).fit(frame, y)
    assert (model.transduction_ == truth).mean() > 0.95
    assert list(model.report_["left_out_columns"]) == ["id"]
    assert model.n_features_in_ == 4
    frame.to_parquet(tmp_path / "x.parquet")
    again = LowRankLabelPropagation(random_state=0).fit(str(tmp_path / "x.parquet"), y)
    np.testing.assert_array_equal(again.label_distributions_, model.label_distributions_)
    model.save(tmp_path / "model")
    loaded = LowRankLabelPropagation.load(tmp_path / "model")
    mixed = frame[["size", "plan", "when"]].assign(more=1.0)  # another order, one column more
    np.testing.assert_array_equal(loaded.predict_proba(mixed), model.predict_proba(frame))
    mixed.loc[0, "plan"] = "new"
    assert loaded.predict(mixed).shape == (N,)
    with pytest.raises(BadRowsError, match=r"lacks 1 of the 3 columns .*: 'plan'"):
        loaded.predict(frame[["when", "size"]])


def test_parameters_choose_the_columns(table):
    frame, _, y = table
    chosen = LowRankLabelPropagation(columns=["size"], missing="mean").fit(frame, y)
    dropped = LowRankLabelPropagation(drop=["id", "when", "plan"], missing="mean").fit(frame, y)
    np.testing.assert_array_equal(chosen.label_distributions_, dropped.label_distributions_)
    assert chosen.report_["left_out_columns"] == {}
    with pytest.raises(BadRowsError, match="hold text, and features must be numbers"):
        LowRankLabelPropagation(categorical="error").fit(frame, y)
    with pytest.raises(ParameterError, match="categorical='hash' is not known"):
        LowRankLabelPropagation(categorical="hash").fit(frame, y)
    with pytest.raises(ParameterError, match="columns: data frame has no column 'age'"):
        LowRankLabelPropagation(columns=["age"]).fit(frame, y)
    with pytest.raises(ParameterError, match=r"drop=.* means nothing for an array"):
        LowRankLabelPropagation(drop=["a"]).fit(np.eye(N), y)


def test_frames_of_numbers_are_arrays_unless_a_column_is_none():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(N, 3)) + np.arange(N)[:, None] % 2, columns=list("abc"))
    y = np.where(np.arange(N) % 5 == 0, np.arange(N) % 2, -1)
    plain = LowRankLabelPropagation().fit(frame, y)
    as_array = LowRankLabelPropagation().fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(plain.label_distributions_, as_array.label_distributions_)
    numbered = frame.assign(**{"Unnamed: 0": np.arange(N)})
    without = LowRankLabelPropagation().fit(numbered, y)
    assert without.report_["left_out_columns"] == {"Unnamed: 0": "it counts the rows"}
    np.testing.assert_array_equal(without.label_distributions_, plain.label_distributions_)
    constant = frame.assign(c=1.0)  # new rows need not vary
    assert plain.predict(constant).shape == (N,)


def test_regression_on_a_table(table):
    frame, truth, _ = table
    y = np.where(np.arange(N) % 4 == 0, truth * 2.0, np.nan)
    model = LowRankLabelPropagationRegressor(random_state=0).fit(frame, y)
    assert np.abs(model.predict(frame) - truth * 2.0).mean() < 0.3


def test_first_hour_5_categories_of_numbers_are_not_called_text(table):
    frame, _, y = table
    codes = frame[["size"]].assign(shop=pd.Categorical(np.arange(len(frame)) % 4))
    with pytest.raises(BadRowsError, match=r"'shop' \(dictionary.*hold text or categories, and"):
        LowRankLabelPropagation(categorical="error", missing="mean").fit(codes, y)


COLUMNS = ["a", "b", "c"]


@pytest.fixture
def named_rows():
    X, y, _ = blobs(features=3)
    return pd.DataFrame(X, columns=COLUMNS), y


def fitted_on(kind: str, frame, y, folder):
    if kind == "frame":
        return model().fit(frame, y)
    path = folder / f"x.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return model().fit([path] if kind == "parquet" else path, y)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_after_fit_and_after_load(kind, named_rows, tmp_path):
    frame, y = named_rows
    fitted = fitted_on(kind, frame, y, tmp_path)
    assert fitted.feature_names_in_.tolist() == COLUMNS
    assert fitted.n_features_in_ == 3
    fitted.save(tmp_path / "m.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "m.biglp")
    assert loaded.feature_names_in_.tolist() == COLUMNS
    assert loaded.n_features_in_ == 3
    np.testing.assert_array_equal(loaded.predict_proba(frame), fitted.predict_proba(frame))
    other = frame[["c", "a", "b"]]
    if kind == "frame":  # plain numbers are an array, as for other estimators
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(other)
    else:  # columns of a table are known by their names
        np.testing.assert_array_equal(loaded.predict_proba(other), fitted.predict_proba(frame))


def test_rows_without_names_have_none(named_rows, tmp_path):
    frame, y = named_rows
    fitted = model().fit(frame, y)
    np.save(tmp_path / "x.npy", frame.to_numpy())
    fitted.fit(tmp_path / "x.npy", y)
    assert not hasattr(fitted, "feature_names_in_")
    fitted.save(tmp_path / "m.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "m.biglp")
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.n_features_in_ == 3


def test_names_come_through_a_pipeline(named_rows):
    frame, y = named_rows
    pipeline = make_pipeline(StandardScaler(), model()).set_output(transform="pandas").fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == COLUMNS
    assert pipeline[:-1].get_feature_names_out().tolist() == COLUMNS
    assert not hasattr(pipeline[-1], "set_output")  # a classifier transforms nothing
    assert not hasattr(LowRankLabelPropagationRegressor(), "get_feature_names_out")


NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture
def labelled_rows(tmp_path):
    """The path of a table with IDs and labels of some rows, rows, labels, and truth."""
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
    found = small_model(label_column="kind", id_column="key").fit(path)
    expected = small_model().fit(X, y)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    y[:10] = truth[:10]
    lines = "".join(f"K{row},{truth[row]}\n" for row in range(10))
    (tmp_path / "answers.csv").write_text("key,label\n" + lines)
    found = small_model(label_column="kind", id_column="key").fit(path, tmp_path / "answers.csv")
    np.testing.assert_array_equal(found.transduction_, small_model().fit(X, y).transduction_)
    found = small_model(label_column="kind", id_column="key")
    found.fit(str(path), [str(tmp_path / "answers.csv")] * 2)
    np.testing.assert_array_equal(found.transduction_, small_model().fit(X, y).transduction_)


def test_rows_in_memory_with_a_file_of_labels(labelled_rows, tmp_path):
    _, X, y, _ = labelled_rows
    known = np.flatnonzero(y != "")
    lines = "".join(f"{row},{y[row]}\n" for row in known)
    (tmp_path / "labels.csv").write_text("row,label\n" + lines)
    found = small_model().fit(X, tmp_path / "labels.csv", sample_weight=np.ones(300))
    np.testing.assert_array_equal(found.transduction_, small_model().fit(X, y).transduction_)


def test_ids_that_are_not_there_are_warned_of(labelled_rows, tmp_path):
    path = labelled_rows[0]
    (tmp_path / "answers.csv").write_text("key,label\nK1,ant\nnix,bee\n")
    with pytest.warns(LabelWarning, match="1 IDs are those of no row"):
        small_model(label_column="kind", id_column="key").fit(path, tmp_path / "answers.csv")


def test_first_suggestions_leave_labels_and_ids_out(labelled_rows):
    path, X, _, _ = labelled_rows
    found = small_model(label_column="kind", id_column="key").suggest_first(path, 5)
    assert found.tolist() == small_model().suggest_first(X, 5).tolist()


def test_what_is_refused(labelled_rows):
    path, X, y, _ = labelled_rows
    with pytest.raises(ParameterError, match="y holds the labels"):
        small_model(label_column="kind").fit(path, y)
    with pytest.raises(ParameterError, match="X is in memory"):
        small_model(id_column="key").fit(X, y)
    with pytest.raises(ParameterError, match="no column 'nix'"):
        small_model(label_column="nix").fit(path)
    with pytest.raises(LabelError, match="y to be passed"):
        small_model().fit(X)


def test_the_name_of_a_column_is_no_file():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "kind": ["x", None, "y"]})
    with pytest.raises(ParameterError, match=r"is a column of X; give .* y=X\['kind'\]"):
        LowRankLabelPropagation().fit(frame, "kind")
