"""Sums with a sparse Gram matrix: the answers of the dense path, on any engine, resumed too."""

import numpy as np
import pytest

from helpers import blobs, model, rows_in_a_block


@pytest.fixture
def sparse_always(monkeypatch):
    monkeypatch.setattr("biglp._algebra.systems.DENSE_RANK", 1)
    monkeypatch.setattr("biglp._algebra.systems.DENSE_WORK", 0)


class TestSparseSums:
    @pytest.mark.parametrize(
        "settings_of_model",
        [
            {"factor": "anchors", "alpha": "auto", "class_balance": "auto"},
            {"factor": "anchors", "solver": "iterative"},
            {"factor": "auto", "alpha": "auto", "class_balance": "auto"},
        ],
    )
    def test_same_answers_as_the_dense_path(self, settings_of_model, monkeypatch):
        X, y, _ = blobs(n=600, classes=3, labelled=60, dtype=np.float64)

        def fitted():
            return model(**settings_of_model, n_landmarks=60).fit(X, y)

        dense = fitted()
        monkeypatch.setattr("biglp._algebra.systems.DENSE_RANK", 1)
        monkeypatch.setattr("biglp._algebra.systems.DENSE_WORK", 0)
        found = fitted()
        np.testing.assert_array_equal(found.transduction_, dense.transduction_)
        np.testing.assert_allclose(
            found.label_distributions_, dense.label_distributions_, atol=1e-6
        )

    @pytest.mark.usefixtures("sparse_always")
    def test_torch_and_any_number_of_threads_give_the_same_answers(self):
        X, y, _ = blobs(n=600, classes=3, labelled=60, dtype=np.float32)
        expected = model(n_landmarks=200).fit(X, y)
        with rows_in_a_block(50):
            one, more = (model(n_landmarks=200, engine=engine) for engine in ("serial", "threads"))
            found = [each.fit(X, y).label_distributions_ for each in (one, more)]
        assert found[0].tobytes() == found[1].tobytes()
        np.testing.assert_allclose(found[0], expected.label_distributions_, atol=1e-6)
        pytest.importorskip("torch")
        on_torch = model(n_landmarks=200, device="torch:cpu").fit(X, y)
        np.testing.assert_allclose(
            on_torch.label_distributions_, expected.label_distributions_, atol=1e-4
        )
