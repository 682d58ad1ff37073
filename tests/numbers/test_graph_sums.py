"""Sums with a sparse Gram matrix: the answers of the dense path, on any engine, resumed too."""

from unittest import mock

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._engines import SerialEngine, ThreadEngine
from biglp._files import RunFolder
from biglp._fit.pipeline import Pipeline
from biglp._labels import encode_labels
from biglp._output import ArraySink
from biglp._rows import as_source
from helpers import blobs, model, rows_in_a_block, settings_of


@pytest.fixture
def sparse_always(monkeypatch):
    """Treat every rank as a large one."""
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
    def test_torch_gives_the_same_answers(self):
        pytest.importorskip("torch")
        X, y, _ = blobs(n=600, classes=3, labelled=60, dtype=np.float32)
        found = model(n_landmarks=60, device="torch:cpu").fit(X, y)
        expected = model(n_landmarks=60).fit(X, y)
        np.testing.assert_array_equal(found.transduction_, expected.transduction_)
        np.testing.assert_allclose(
            found.label_distributions_, expected.label_distributions_, atol=1e-4
        )

    @pytest.mark.usefixtures("sparse_always")
    def test_a_resumed_run_finds_the_sparse_sums(self, tmp_path):
        X, y, _ = blobs(n=600, classes=3, labelled=60, dtype=np.float32)
        labels = encode_labels(y, len(y))
        wanted = settings_of(model(n_landmarks=60))

        def coefficients(*, resume):
            sink = ArraySink(labels.classes, len(y), X.dtype)
            folder = RunFolder(tmp_path, {}, resume=resume)
            found = Pipeline(SerialEngine(), wanted, folder).fit(as_source(X), labels, sink)
            folder.close()
            return found.model.answer.coefficients

        first = coefficients(resume=False)
        (tmp_path / "decision.npz").unlink()
        with mock.patch("biglp._graph.graph.Graph._sweep_gram", side_effect=AssertionError):
            second = coefficients(resume=True)
        assert "gram_columns" in np.load(tmp_path / "rows-gram.npz").files
        assert first.tobytes() == second.tobytes()

    @pytest.mark.usefixtures("sparse_always")
    def test_same_bits_on_any_number_of_threads(self):
        X, y, _ = blobs(n=900, classes=3, labelled=60, dtype=np.float32)

        def answers(engine):
            with rows_in_a_block(50):
                fitted = LowRankLabelPropagation(
                    factor="anchors", n_landmarks=200, engine=engine, random_state=0
                ).fit(X, y)
            return fitted.label_distributions_.tobytes()

        assert answers(SerialEngine()) == answers(ThreadEngine(3))
