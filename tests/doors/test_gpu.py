"""Torch tensors and the card against the processor; torch's CPU takes the place of a card."""

import pickle
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, LabelError, MissingExtraError, ParameterError
from biglp._fit import GPU_LIBRARY_BYTES
from biglp._labels import encode_labels
from biglp._rows import PreparedRows, as_source
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


# Rows on a device ---------------------------------------------------------------------------------


CPU, N_LANDMARKS = "torch:cpu", 12


def as_rows(tensor, **options):
    with mock.patch(f"{as_source.__module__}.device_tensor", return_value=tensor):
        return as_source(tensor, **options)


def data(dtype="float32", n=400):
    X, y, _ = blobs(n=n, dtype="float32")
    tensor = torch.as_tensor(X).to(getattr(torch, dtype))
    return tensor, tensor.float().numpy(), y


def prepared(tensor):
    return PreparedRows(as_rows(tensor), np.dtype(np.float32), device=CPU)


def test_rows_are_views_widened_where_they_are_worked_on():
    tensor, X, _ = data()
    assert prepared(tensor).read(5, 9).data_ptr() == tensor[5:].data_ptr()
    np.testing.assert_array_equal(prepared(tensor).take(np.array([1, 7])), X[[1, 7]])
    for dtype in ("float16", "bfloat16"):
        tensor, X, _ = data(dtype)
        rows = prepared(tensor)
        assert rows.stored(0, 4).data_ptr() == tensor.data_ptr()
        assert rows.read(0, 4).dtype == torch.float32
        np.testing.assert_array_equal(rows.read(0, 4), X[:4])


def test_what_cannot_be_rows_on_a_device():
    for tensor, options, error, message in (
        (torch.ones(3), {}, BadRowsError, "two-dimensional"),
        (torch.ones((3, 2), dtype=torch.complex64), {}, BadRowsError, "complex64, which cannot"),
        (torch.ones((3, 2)), {"missing": "mean"}, ParameterError, r"missing='mean'.*X\.cpu\(\)"),
    ):
        with pytest.raises(error, match=message):
            as_rows(tensor, **options)
    tensor, _, y = data()
    with pytest.raises(ParameterError, match=r"X is on torch:cpu, but device='cpu'"):
        LowRankLabelPropagation().fit(as_rows(tensor), y)


class Foreign:
    def __init__(self, kind):
        self._kind = kind

    def __dlpack_device__(self):
        return self._kind, 0


def test_arrays_of_other_libraries_on_a_card_are_taken_without_a_copy():
    tensor, _, _ = data()
    foreign = Foreign(2)
    with (
        mock.patch("biglp._core.arrays.require_device"),
        mock.patch.object(torch, "from_dlpack", return_value=tensor) as taken,
    ):
        source = as_source(foreign)
    taken.assert_called_once_with(foreign)
    assert source.read(5, 9).data_ptr() == tensor[5:].data_ptr()
    with pytest.raises(BadRowsError):  # an object on the processor is no business of torch
        as_source(Foreign(1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("factor", ["auto", "nystrom"])
def test_answers_stay_where_the_rows_are(factor, dtype):
    tensor, X, y = data(dtype)
    settings = {"factor": factor, "n_landmarks": N_LANDMARKS}
    source = as_rows(tensor)
    found = LowRankLabelPropagation(device=CPU, **settings).fit(source, y)
    expected = LowRankLabelPropagation(**settings).fit(X, y)
    probabilities = found.predict_proba(source)
    assert all(map(torch.is_tensor, (found.transduction_, probabilities)))
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    wanted = expected.label_distributions_
    np.testing.assert_allclose(found.label_distributions_, wanted, atol=1e-5)
    np.testing.assert_allclose(probabilities, expected.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(found.suggest(3), expected.suggest(3))
    again = found.update_labels([399], [y.max()])
    assert torch.is_tensor(again.transduction_)
    assert isinstance(pickle.loads(pickle.dumps(again)).transduction_, np.ndarray)


def test_only_labelled_rows_leave_the_card():
    def encode(y, n_rows, **options):
        tensor = torch.as_tensor(y)
        with mock.patch(f"{encode_labels.__module__}.device_tensor", return_value=tensor):
            return encode_labels(tensor, n_rows, **options)

    for unknown in (-1, np.nan):
        y = np.array([unknown, 3, unknown, 5, 3])
        found, expected = encode(y, 5), encode_labels(y, 5)
        for name in ("classes", "rows", "codes"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        weighted = encode(y, 5, sample_weight=np.arange(5.0))
        np.testing.assert_array_equal(weighted.weights, [1, 3, 4])
    with pytest.raises(LabelError, match=r"y has shape \(2,\) but X has 3 rows"):
        encode([0, 1], 3)
    with pytest.raises(LabelError, match="only one class"):
        encode([1, 1, -1], 3)
