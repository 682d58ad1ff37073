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
from biglp._fit import GPU_LIBRARY_BYTES
from clusters import MPIEXEC
from helpers import blobs, clear_rows, model

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')
ON_CARD = torch.cuda.is_available()
DEVICE = "cuda" if ON_CARD else "torch:cpu"
needs_card = pytest.mark.skipif(not ON_CARD, reason="needs a CUDA GPU")
pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
METHODS = (
    {"factor": "auto"},
    {"factor": "anchors"},
    {"factor": "anchors", "filter": "poisson"},
    {"factor": "anchors", "solver": "iterative"},
    {"factor": "nystrom"},
    {"factor": "nystrom", "solver": "iterative", "class_balance": "mass"},
    {"factor": "linear"},
)


def test_what_a_device_cannot_do_is_said(monkeypatch):
    X, y, _ = blobs()
    if not ON_CARD:
        with pytest.raises(ParameterError, match=r"device='cuda' .* sees no CUDA GPU .*'cpu'"):
            model(device="cuda").fit(X, y)
    X[7, 1] = np.nan
    for factor in ("anchors", "linear"):
        with pytest.raises(BadRowsError, match="rows 7"):
            model(factor=factor, device="torch:cpu").fit(X, y)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'needs torch.*pip install "biglp\[gpu\]"'):
        model(device="cuda").fit(X, y)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "linear", "glnp"])
def test_the_device_gives_the_labels_of_the_processor(factor, storage):
    # GLNP's line search takes other turns after other rounding, so it gets few and exact steps.
    dtype, steps = ("float64", {"max_iter": 10}) if factor == "glnp" else ("float32", None)
    X, y, _ = blobs(n=300, dtype=dtype)
    rows = storage(np.where(X > 0, X, 0) + X.dtype.type(0.01))
    settings = {"factor": factor, "n_landmarks": 12, "class_balance": "auto"}
    on_cpu, on_device = (
        model(**settings, factor_params=steps, device=device).fit(rows, y)
        for device in ("cpu", "torch:cpu")
    )
    for found, expected in (
        (on_device.label_distributions_, on_cpu.label_distributions_),
        (on_device.predict_proba(rows), on_cpu.predict_proba(rows)),
    ):
        np.testing.assert_allclose(found, expected, atol=3e-3)
    clear = clear_rows(on_cpu.label_distributions_, 4e-4)
    np.testing.assert_array_equal(on_device.transduction_[clear], on_cpu.transduction_[clear])


def test_a_model_fitted_on_a_device_predicts_in_a_new_process(tmp_path):
    X, y, _ = blobs()
    fitted = model(device="torch:cpu").fit(X, y)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted))
    np.save(tmp_path / "X.npy", X)
    code = (
        "import pickle, sys, numpy as np;"
        "assert 'torch' not in sys.modules;"
        "model = pickle.load(open('model.pickle', 'rb'));"
        "np.save('answers.npy', model.predict_proba(np.load('X.npy')))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
    expected = fitted.predict_proba(X)
    np.testing.assert_allclose(np.load(tmp_path / "answers.npy"), expected, atol=1e-12)
    fitted.save(tmp_path / "a.model")
    loaded = LowRankLabelPropagation.load(tmp_path / "a.model")  # it predicts on the processor
    np.testing.assert_allclose(loaded.predict_proba(X), expected, atol=1e-9)


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


@settings(
    max_examples=50 if ON_CARD else 5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(problem=problems())
def test_labels_are_those_of_the_processor(problem):
    check_labels(*problem)


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


# Only where there is a card -----------------------------------------------------------------------


@needs_card
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("factor", ["auto", "nystrom", "linear"])
def test_rows_and_labels_on_the_card(factor, dtype):
    X, y, _ = blobs(n=3000, dtype="float32")
    rows = torch.as_tensor(X, device="cuda").to(getattr(torch, dtype))
    found = LowRankLabelPropagation(factor=factor, n_landmarks=20, device="auto")
    found.fit(rows, torch.as_tensor(y, device="cuda"))
    expected = LowRankLabelPropagation(factor=factor, n_landmarks=20)
    expected.fit(rows.float().cpu().numpy(), y)
    assert found.transduction_.is_cuda
    assert found.predict(rows).is_cuda
    assert (found.transduction_.cpu().numpy() == expected.transduction_).mean() > 0.999


@needs_card
def test_arrays_of_cupy():
    cupy = pytest.importorskip("cupy")
    X, y, _ = blobs(n=3000, dtype="float32")
    found = LowRankLabelPropagation(n_landmarks=20, device="cuda")
    found.fit(cupy.asarray(X), cupy.asarray(y))
    expected = LowRankLabelPropagation(n_landmarks=20).fit(X, y)
    assert (found.transduction_.cpu().numpy() == expected.transduction_).mean() > 0.999


@needs_card
@pytest.mark.parametrize(
    ("n_rows", "method"),
    [*[(1_000_000, method) for method in (0, 1, 4, 6)], (2_000_000, 1), (2_000_000, 4)],
)
def test_memory_is_never_more_than_the_plan(n_rows, method):
    """Also where the rows do not fit and are streamed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 300), dtype=np.float32)
    X[:, 0] += 3 * (np.arange(n_rows) % 3)
    y = np.where(np.arange(n_rows) < 200, np.arange(n_rows) % 3, -1)
    limits = {"gpu_memory": "auto", "scaling": "none", "projection": "none"}
    if n_rows == 2_000_000:
        limits["gpu_memory"] = GPU_LIBRARY_BYTES + (3 << 29)
    model = LowRankLabelPropagation(device="cuda", n_landmarks=200, **METHODS[method], **limits)
    model.fit(X[:1000], y[:1000])  # what the libraries take once
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    facts = model.fit(X, y).report_["device"]
    assert torch.cuda.max_memory_allocated() - before <= facts["planned"]
    assert n_rows < 2_000_000 or not facts["rows_stay"]


@needs_card
def test_a_fit_takes_what_is_free_on_the_card():
    X = np.random.default_rng(0).standard_normal((400_000, 40), dtype=np.float32)
    y = np.where(np.arange(len(X)) < 200, np.arange(len(X)) % 3, -1)
    X[:, 0] += np.arange(len(X)) % 3
    model = LowRankLabelPropagation(factor="nystrom", n_landmarks=200, device="cuda")
    expected = model.fit(X, y).transduction_
    torch.cuda.empty_cache()
    left = 1 << 30
    others = torch.empty(torch.cuda.mem_get_info()[0] - left, dtype=torch.uint8, device="cuda")
    before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    torch.cuda.reset_peak_memory_stats()
    found = model.fit(X, y).transduction_
    assert torch.cuda.max_memory_allocated() - before <= free
    assert (found == expected).mean() > 0.9999
    del others


PROGRAM = """
import sys
import numpy as np
from biglp import LowRankLabelPropagation
X, y = np.load("X.npy"), np.load("y.npy")
model = LowRankLabelPropagation(factor="nystrom", n_landmarks=12, device=sys.argv[1], engine="mpi")
model.fit(X, y)
from mpi4py import MPI
np.save(f"found{MPI.COMM_WORLD.Get_rank()}.npy", model.label_distributions_)
"""


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


@needs_card
def test_tf32_is_near():
    X, y, _ = blobs(n=20_000, dtype="float32")
    found, near = (
        LowRankLabelPropagation(factor="nystrom", n_landmarks=20, device="cuda", precision=each)
        .fit(X, y)
        .label_distributions_
        for each in ("float32", "tf32")
    )
    assert np.abs(found - near).mean() < 0.005
    assert (found.argmax(axis=1) != near.argmax(axis=1)).mean() < 0.01
