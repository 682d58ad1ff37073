"""Torch tensors and the card against the processor; without a card torch's CPU takes its place."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, MissingExtraError, ParameterError
from biglp._core.arrays import (
    is_torch,
    to_device,
    to_numpy,
)
from biglp._fit.plan import GPU_LIBRARY_BYTES
from clusters import MPIEXEC
from helpers import blobs, clear_rows, model, rows_in_a_block

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')
TORCH = "torch:cpu"
DTYPES = ("float32", "float64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-10}


def on_torch(array):
    return to_device(np.asarray(array), TORCH)


def test_a_gpu_that_is_not_there_is_said_to_be_missing():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ParameterError, match=r"device='cuda' .* sees no CUDA GPU .*'cpu'"):
        model(device="cuda").fit(*blobs()[:2])


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'needs torch.*pip install "biglp\[gpu\]"'):
        model(device="cuda").fit(*blobs()[:2])


@pytest.mark.parametrize("factor", ["anchors", "nystrom", "linear"])
def test_rows_that_are_not_finite_are_named(factor):
    X, y, _ = blobs()
    X[7, 1] = np.nan
    with pytest.raises(BadRowsError, match="rows 7"):
        model(factor=factor, device="torch:cpu").fit(X, y)


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
        on_device = model(**settings, device=TORCH).fit(rows, y)
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
                for device in ("cpu", TORCH)
            ]
        np.testing.assert_allclose(found[1], found[0], atol=1e-8)

    def test_a_model_fitted_on_a_device_predicts_in_a_new_process(self, tmp_path):
        X, y, _ = blobs()
        fitted = model(device=TORCH).fit(X, y)
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


ON_CARD = torch.cuda.is_available()
DEVICE = "cuda" if ON_CARD else "torch:cpu"
needs_card = pytest.mark.skipif(not ON_CARD, reason="needs a CUDA GPU")
METHODS = (
    {"factor": "auto"},
    {"factor": "anchors"},
    {"factor": "anchors", "filter": "poisson"},
    {"factor": "anchors", "solver": "iterative"},
    {"factor": "nystrom"},
    {"factor": "nystrom", "solver": "iterative", "class_balance": "mass"},
    {"factor": "linear"},
)


@st.composite
def problems(draw):
    """Clusters that overlap, some labels, and a method with landmarks that are given.

    Landmarks that k-means finds may be others after other rounding.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, m = draw(st.integers(60, 1500)), draw(st.integers(2, 40))
    n_classes = draw(st.integers(2, 6))
    truth = np.arange(n_rows) % n_classes
    centres = rng.normal(size=(n_classes, m)) * draw(st.floats(0.5, 3))
    X = (centres[truth] + rng.normal(size=(n_rows, m))).astype(draw(st.sampled_from("fd")))
    y = np.where(np.arange(n_rows) < draw(st.integers(5 * n_classes, 60)), truth, -1)
    method = dict(draw(st.sampled_from(METHODS)))
    if method["factor"] != "linear":
        method |= {"landmarks": X[:: max(n_rows // draw(st.integers(4, 50)), 1)]}
    return X, y, method if "filter" in method else method | {"alpha": 0.9}


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@settings(
    max_examples=50 if ON_CARD else 5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(problem=problems())
def test_labels_are_those_of_the_processor(problem):
    check_labels(*problem)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@needs_card
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_labels_through_kernels_are_those_of_the_processor(method, monkeypatch):
    """Problems above are too small for kernels, each size of which takes seconds to compile."""
    monkeypatch.setattr("biglp._compiled.gpu.FEWEST_ROWS", 1)
    rng, truth = np.random.default_rng(0), np.arange(6000) % 4
    X = (rng.normal(size=(4, 20))[truth] + rng.normal(size=(6000, 20))).astype(np.float32)
    given = {} if method["factor"] == "linear" else {"landmarks": X[::150]}
    alpha = {} if "filter" in method else {"alpha": 0.9}
    check_labels(X, np.where(np.arange(6000) < 60, truth, -1), method | given | alpha)


def check_labels(X, y, method):
    expected = LowRankLabelPropagation(**method).fit(X, y)
    found = LowRankLabelPropagation(device=DEVICE, **method).fit(X, y)
    best = np.sort(expected.label_distributions_, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-4 * best[:, -1]
    np.testing.assert_array_equal(
        found.transduction_[clear], expected.transduction_[clear], str(method)
    )
    np.testing.assert_array_equal(found.predict(X)[clear], expected.predict(X)[clear])


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@needs_card
class TestCard:
    @pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
    @pytest.mark.parametrize("factor", ["auto", "nystrom", "linear"])
    def test_rows_and_labels_on_the_card(self, factor, dtype):
        X, y, _ = blobs(n=3000, dtype="float32")
        rows = torch.as_tensor(X, device="cuda").to(getattr(torch, dtype))
        found = LowRankLabelPropagation(factor=factor, n_landmarks=20, device="auto")
        found.fit(rows, torch.as_tensor(y, device="cuda"))
        expected = LowRankLabelPropagation(factor=factor, n_landmarks=20)
        expected.fit(rows.float().cpu().numpy(), y)
        assert found.transduction_.is_cuda
        assert found.predict(rows).is_cuda
        assert (to_numpy(found.transduction_) == expected.transduction_).mean() > 0.999

    def test_arrays_of_cupy(self):
        cupy = pytest.importorskip("cupy")
        X, y, _ = blobs(n=3000, dtype="float32")
        found = LowRankLabelPropagation(n_landmarks=20, device="cuda")
        found.fit(cupy.asarray(X), cupy.asarray(y))
        expected = LowRankLabelPropagation(n_landmarks=20).fit(X, y)
        assert is_torch(found.transduction_)
        assert (to_numpy(found.transduction_) == expected.transduction_).mean() > 0.999

    @pytest.mark.parametrize("n_rows", [100_000, 1_000_000])
    @pytest.mark.parametrize("method", [0, 1, 4, 6], ids=["auto", "anchors", "nystrom", "linear"])
    def test_memory_is_never_more_than_the_plan(self, n_rows, method):
        self.check_memory(n_rows, dict(METHODS[method]), None)

    @pytest.mark.parametrize("method", [1, 4], ids=["anchors", "nystrom"])
    def test_rows_that_do_not_fit_are_streamed(self, method):
        facts = self.check_memory(2_000_000, dict(METHODS[method]), GPU_LIBRARY_BYTES + (3 << 29))
        assert not facts["rows_stay"]

    def check_memory(self, n_rows, method, gpu_memory):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, 300), dtype=np.float32)
        X[:, 0] += 3 * (np.arange(n_rows) % 3)
        y = np.where(np.arange(n_rows) < 200, np.arange(n_rows) % 3, -1)
        limits = {"gpu_memory": gpu_memory or "auto", "scaling": "none", "projection": "none"}
        model = LowRankLabelPropagation(device="cuda", n_landmarks=200, **method, **limits)
        model.fit(X[:1000], y[:1000])  # what the libraries take once
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        facts = model.fit(X, y).report_["device"]
        assert torch.cuda.max_memory_allocated() - before <= facts["planned"]
        return facts


PROGRAM = """
import sys
import numpy as np
from biglp import LowRankLabelPropagation
from biglp._engines.mpi import MpiEngine
X, y = np.load("X.npy"), np.load("y.npy")
engine = MpiEngine()
model = LowRankLabelPropagation(factor="nystrom", n_landmarks=12, device=sys.argv[1], engine=engine)
model.fit(X, y)
np.save(f"found{engine.rank}.npy", model.label_distributions_)
"""


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@needs_card
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python")
def test_two_ranks_share_one_card(tmp_path):
    X, y, _ = blobs(n=600, dtype="float32")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [MPIEXEC, "-n", "2", sys.executable, "-m", "mpi4py", "program.py", DEVICE]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    alone = LowRankLabelPropagation(factor="nystrom", n_landmarks=12, device=DEVICE).fit(X, y)
    for rank in range(2):
        found = np.load(tmp_path / f"found{rank}.npy")
        np.testing.assert_array_equal(found, alone.label_distributions_)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@needs_card
def test_tf32_is_near():
    X, y, _ = blobs(n=20_000, dtype="float32")
    found, near = [
        LowRankLabelPropagation(factor="nystrom", n_landmarks=20, device="cuda", precision=each)
        .fit(X, y)
        .label_distributions_
        for each in ("float32", "tf32")
    ]
    assert np.abs(found - near).mean() < 0.005
    assert (found.argmax(axis=1) != near.argmax(axis=1)).mean() < 0.01
