"""What the classifier says of rows, in scikit-learn's forms."""

import numpy as np
import pytest

from biglp._core.errors import ParameterError
from helpers import blobs, model


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_hour_11_log_probabilities_and_decisions_agree_with_predict(classes, dtype):
    X, y, _ = blobs(n=200, labelled=12, classes=classes, dtype=dtype)
    fitted = model().fit(X, y)
    shares, logs = fitted.predict_proba(X), fitted.predict_log_proba(X)
    assert logs.dtype == dtype
    np.testing.assert_allclose(np.exp(logs), shares, rtol=1e-5)
    decisions = fitted.decision_function(X)
    assert np.isfinite(decisions).all()
    codes = decisions.argmax(axis=1) if classes > 2 else (decisions > 0).astype(int)
    assert decisions.shape == ((200, 3) if classes > 2 else (200,))
    assert (fitted.classes_[codes] == fitted.predict(X)).all()


def test_first_hour_11_a_probability_of_zero_is_finite_as_a_decision():
    X, y, _ = blobs(n=60, labelled=10, classes=2)
    fitted = model().fit(X, y)
    fitted.predict_proba = lambda _: np.array([[0.0, 1.0], [1.0, 0.0]], dtype=np.float32)
    assert fitted.predict_log_proba(X[:2]).tolist() == [[-np.inf, 0.0], [0.0, -np.inf]]
    first, second = fitted.decision_function(X[:2])
    assert 0 < first < np.inf
    assert second == -first


def test_first_hour_11_the_likeliest_classes():
    X, y, _ = blobs(n=200, labelled=12)
    names = np.where(y < 0, "", np.char.add("class ", y.astype(str)))
    fitted = model().fit(X, names)
    labels, probabilities = fitted.predict_top(X, 2)
    assert labels.shape == probabilities.shape == (200, 2)
    assert (labels[:, 0] == fitted.predict(X)).all()
    assert (np.diff(probabilities, axis=1) <= 0).all()
    shares = fitted.predict_proba(X)
    assert probabilities.tolist() == (-np.sort(-shares, axis=1))[:, :2].tolist()
    every, _ = fitted.predict_top(X, 3)
    assert {tuple(sorted(row)) for row in every.tolist()} == {tuple(fitted.classes_)}
    with pytest.raises(ParameterError, match="n=4 is more than the 3 classes; give 1 to 3"):
        fitted.predict_top(X, 4)
    with pytest.raises(ParameterError, match="n=0 cannot be used"):
        fitted.predict_top(X, 0)
