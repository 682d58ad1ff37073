"""The same block functions on torch tensors; device="torch:cpu" runs the GPU path without a GPU."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._compiled import column_sums
from biglp._core.arrays import (
    RowEntries,
    is_torch,
    like,
    namespace,
    require_device,
    smallest,
    to_dense,
    to_device,
    to_numpy,
)
from biglp._core.errors import MissingExtraError, NonFiniteRowsError, ParameterError
from biglp._engines import SerialEngine
from biglp._graph.anchors import AnchorFactor
from biglp._graph.kernels import distances_to, gaussian, scatter
from biglp._graph.kmeans import Lloyd
from biglp._graph.linear import LinearFactor, negative_offsets
from biglp._graph.normalise import Normalisation
from biglp._graph.nystrom import NystromFactor
from biglp._labels.labels import OwnLabels
from biglp._learn.spreading import SpreadingPredictor
from helpers import blobs, blocks_of, clear_rows, model, rows_in_a_block

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')

DEVICE = "torch:cpu"
DTYPES = ("float32", "float64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-10}


def on_torch(array):
    return to_device(np.asarray(array), DEVICE)


class TestArrays:
    def test_the_namespace_follows_the_array(self):
        assert namespace(np.ones(2)) is np
        assert namespace(torch.ones(2)) is torch
        assert is_torch(torch.ones(2))
        assert not is_torch(np.ones(2))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_there_and_back(self, dtype):
        rows = np.arange(6, dtype=dtype).reshape(2, 3)
        rows.flags.writeable = False
        moved = to_device(rows, DEVICE)
        assert is_torch(moved)
        np.testing.assert_array_equal(to_numpy(moved), rows)
        np.testing.assert_array_equal(to_dense(to_device(sparse.csr_matrix(rows), DEVICE)), rows)
        assert to_device(rows, "cpu") is rows

    def test_constants_take_the_precision_of_the_rows(self):
        constant = like(torch.ones(2, dtype=torch.float32), np.ones(3))
        assert constant.dtype == torch.float32

    def test_column_sums(self):
        rows = np.random.default_rng(0).normal(size=(7, 3))
        for array in (rows, on_torch(rows), sparse.csr_matrix(rows)):
            np.testing.assert_allclose(to_numpy(column_sums(array)), rows.sum(axis=0))

    def test_a_gpu_that_is_not_there_is_said_to_be_missing(self):
        if torch.cuda.is_available():
            pytest.skip("this machine has a GPU")
        with pytest.raises(ParameterError, match=r"device='cuda' .* sees no CUDA GPU .*'cpu'"):
            require_device("cuda")

    def test_without_torch_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtraError, match=r'needs torch.*pip install "biglp\[gpu\]"'):
            require_device("cuda")


@pytest.mark.parametrize("dtype", DTYPES)
class TestBlockFunctions:
    def rows(self, dtype):
        return blobs(dtype=dtype)[0]

    def test_kernel(self, dtype):
        X = self.rows(dtype)
        found = gaussian(on_torch(X), X[:9], 0.8)
        np.testing.assert_allclose(to_numpy(found), gaussian(X, X[:9], 0.8), atol=TOLERANCE[dtype])

    def test_kernel_of_rows_far_out(self, dtype):
        X = self.rows(dtype) * 1e5
        found = to_numpy(gaussian(on_torch(X), X, 0.01))
        assert found.max() <= 1
        assert np.isfinite(found).all()

    def test_nearest_and_scatter(self, dtype):
        X = self.rows(dtype)
        columns, values = smallest(distances_to(X[:9], X)(X), 3)
        torch_columns, torch_values = smallest(distances_to(X[:9], on_torch(X))(on_torch(X)), 3)
        np.testing.assert_array_equal(to_numpy(torch_columns), columns)
        np.testing.assert_allclose(to_numpy(torch_values), values, atol=TOLERANCE[dtype] * 10)
        np.testing.assert_allclose(
            to_numpy(scatter(torch_columns, torch_values, 9)),
            scatter(columns, values, 9).toarray(),
            atol=TOLERANCE[dtype] * 10,
        )

    @pytest.mark.parametrize("kind", ["anchors", "nystrom-narrow", "nystrom-wide", "linear"])
    def test_features_normalised_and_decided(self, dtype, kind):
        X = self.rows(dtype)
        factor = {
            "anchors": AnchorFactor(X[:9], 0.8),
            "nystrom-narrow": NystromFactor(X[:9], 0.2),
            "nystrom-wide": NystromFactor(X[:9], 3.0),
            "linear": LinearFactor(X.min(axis=0)),
        }[kind]
        on_cpu, on_device = factor.features(X), factor.features(on_torch(X))
        assert is_torch(on_device) or isinstance(on_device, RowEntries)
        np.testing.assert_allclose(to_dense(on_device), to_dense(on_cpu), atol=5 * TOLERANCE[dtype])
        sums = None
        if not factor.unit_degrees:
            sums = np.asarray(column_sums(on_cpu), dtype=np.float64)
            sums = sums if factor.mixing is None else sums @ factor.mixing
        normalisation = Normalisation(sums, len(X), factor.mixing)
        rng = np.random.default_rng(0)
        answer = SpreadingPredictor(rng.random((on_cpu.shape[1], 3)), np.ones(3), np.full(3, 1 / 3))
        own = OwnLabels(np.array([0, 5]), np.eye(3)[[1, 2]], np.array([1.0, 2.0]))
        answers = []
        for features in (on_cpu, on_device):
            normalised, repaired = normalisation.apply(features)
            answers.append((*answer.outputs(normalised, own=own), repaired))
        assert answers[0][1:] == answers[1][1:]
        np.testing.assert_allclose(
            to_numpy(answers[1][0]), answers[0][0], atol=50 * TOLERANCE[dtype]
        )

    def test_repair_and_unreached_rows(self, dtype):
        features = np.array([[1, 1], [0, 0], [-1, 0.9], [2, 1]], dtype=dtype)
        normalisation = Normalisation(np.array([100.0, 99.0]), 4)
        answer = SpreadingPredictor(np.eye(2), np.ones(2), np.array([0.25, 0.75]))
        results = []
        for rows in (features, on_torch(features)):
            normalised, repaired = normalisation.apply(rows)
            probabilities, unreached = answer.outputs(normalised)
            results.append((to_numpy(probabilities), repaired, unreached))
        np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-6)
        assert results[0][1:] == results[1][1:] == (1, 1)

    def test_lloyd_and_minimums(self, dtype):
        X = self.rows(dtype)
        cpu, device = (blocks_of(X, 33, device=place) for place in ("cpu", DEVICE))
        engine = SerialEngine()
        lloyd = Lloyd(engine, X[:6], max_iter=3)
        centres = [lloyd.run(blocks, X[:6])[0] for blocks in (cpu, device)]
        np.testing.assert_allclose(centres[1], centres[0], atol=TOLERANCE[dtype])
        minimums = np.minimum(X.min(axis=0), 0)
        np.testing.assert_array_equal(negative_offsets(engine, device), minimums)

    def test_rows_that_are_not_finite(self, dtype):
        rows = np.ones((3, 2), dtype=dtype)
        rows[1, 1] = np.nan
        for factor in (AnchorFactor(np.eye(2, dtype=dtype), 1.0), LinearFactor(np.zeros(2))):
            with pytest.raises(NonFiniteRowsError):
                factor.features(on_torch(rows))


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
class TestEstimator:
    @pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
    @pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "linear", "glnp"])
    def test_the_device_gives_the_labels_of_the_processor(self, factor, storage):
        # GLNP's line search takes other turns after other rounding, so it gets few and exact steps.
        dtype, steps = ("float64", {"max_iter": 10}) if factor == "glnp" else ("float32", None)
        X, y, _ = blobs(n=300, dtype=dtype)
        rows = storage(np.where(X > 0, X, 0) + X.dtype.type(0.01))
        settings = {"factor": factor, "n_landmarks": 12, "class_balance": "auto"}
        settings["factor_params"] = steps
        on_cpu = model(**settings).fit(rows, y)
        on_device = model(**settings, device=DEVICE).fit(rows, y)
        for found, expected in (
            (on_device.label_distributions_, on_cpu.label_distributions_),
            (on_device.predict_proba(rows), on_cpu.predict_proba(rows)),
        ):
            np.testing.assert_allclose(found, expected, atol=3e-3)
        clear = clear_rows(on_cpu.label_distributions_, 4e-4)
        np.testing.assert_array_equal(on_device.transduction_[clear], on_cpu.transduction_[clear])

    @pytest.mark.parametrize("landmarks", ["kmeans", "kmeans-full", "random"])
    def test_landmarks_are_those_of_the_processor(self, landmarks):
        X, y, _ = blobs(n=300)
        with rows_in_a_block(64):
            found = [
                model(landmarks=landmarks, device=device)
                .fit(X, y)
                ._model.views[0]
                .features.factor.landmarks
                for device in ("cpu", DEVICE)
            ]
        np.testing.assert_allclose(found[1], found[0], atol=1e-8)

    def test_a_model_fitted_on_a_device_predicts_in_a_new_process(self, tmp_path):
        X, y, _ = blobs()
        fitted = model(device=DEVICE).fit(X, y)
        (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted))
        np.save(tmp_path / "X.npy", X)
        code = (
            "import pickle, sys, numpy as np;"
            "assert 'torch' not in sys.modules;"
            "model = pickle.load(open('model.pickle', 'rb'));"
            "np.save('answers.npy', model.predict_proba(np.load('X.npy')))"
        )
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
        np.testing.assert_allclose(
            np.load(tmp_path / "answers.npy"), fitted.predict_proba(X), atol=1e-12
        )
        fitted.save(tmp_path / "a.model")
        loaded = LowRankLabelPropagation.load(tmp_path / "a.model")  # it predicts on the processor
        np.testing.assert_allclose(loaded.predict_proba(X), fitted.predict_proba(X), atol=1e-9)
