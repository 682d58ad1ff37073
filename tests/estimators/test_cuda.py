"""The card against the processor on random problems; without a card torch's CPU takes its place."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from biglp import LowRankLabelPropagation
from biglp._core.arrays import is_torch, to_numpy
from biglp._fit.plan import GPU_LIBRARY_BYTES
from clusters import MPIEXEC
from helpers import blobs

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')

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

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


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
    found, near = [
        LowRankLabelPropagation(factor="nystrom", n_landmarks=20, device="cuda", precision=each)
        .fit(X, y)
        .label_distributions_
        for each in ("float32", "tf32")
    ]
    assert np.abs(found - near).mean() < 0.005
    assert (found.argmax(axis=1) != near.argmax(axis=1)).mean() < 0.01
