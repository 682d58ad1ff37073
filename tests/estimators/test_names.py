"""Names of columns: after fit on a file, after load, in a pipeline of scikit-learn's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from helpers import blobs, model

NAMES = ["a", "b", "c"]


@pytest.fixture
def rows():
    X, y, _ = blobs(features=3)
    return pd.DataFrame(X, columns=NAMES), y


def fitted_on(kind: str, frame, y, folder):
    if kind == "frame":
        return model().fit(frame, y)
    path = folder / f"x.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return model().fit([path] if kind == "parquet" else path, y)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_after_fit_and_after_load(kind, rows, tmp_path):
    frame, y = rows
    fitted = fitted_on(kind, frame, y, tmp_path)
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.n_features_in_ == 3
    fitted.save(tmp_path / "m.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "m.biglp")
    assert loaded.feature_names_in_.tolist() == NAMES
    assert loaded.n_features_in_ == 3
    np.testing.assert_array_equal(loaded.predict_proba(frame), fitted.predict_proba(frame))
    other = frame[["c", "a", "b"]]
    if kind == "frame":  # plain numbers are an array, as for other estimators
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(other)
    else:  # columns of a table are known by their names
        np.testing.assert_array_equal(loaded.predict_proba(other), fitted.predict_proba(frame))


def test_rows_without_names_have_none(rows, tmp_path):
    frame, y = rows
    fitted = model().fit(frame, y)
    np.save(tmp_path / "x.npy", frame.to_numpy())
    fitted.fit(tmp_path / "x.npy", y)
    assert not hasattr(fitted, "feature_names_in_")
    fitted.save(tmp_path / "m.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "m.biglp")
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.n_features_in_ == 3


def test_names_come_through_a_pipeline(rows):
    frame, y = rows
    pipeline = make_pipeline(StandardScaler(), model()).set_output(transform="pandas").fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES
    assert pipeline[:-1].get_feature_names_out().tolist() == NAMES
    assert not hasattr(pipeline[-1], "set_output")  # a classifier transforms nothing
    assert not hasattr(LowRankLabelPropagationRegressor(), "get_feature_names_out")
