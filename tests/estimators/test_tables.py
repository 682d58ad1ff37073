"""Data frames and files with named columns, in the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core.errors import BadRowsError, DriftWarning, ParameterError

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
