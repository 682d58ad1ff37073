"""Triton's kernels against plain torch on a GPU; without one, only that they are left alone.

Triton's interpreter has no bfloat16, of which the products are made.
"""

from importlib.util import find_spec
from unittest import mock

import numpy as np
import pytest

from biglp import _compiled
from biglp._compiled import gram_matrix
from biglp._compiled.gpu import trial
from biglp._core import CardKernelWarning, NonFiniteRowsError, to_numpy
from biglp._engines import SerialEngine
from biglp._graph import Lloyd, Normalisation, nearest_landmarks
from biglp._graph.kernels import gaussian
from biglp._labels import OwnLabels
from biglp._learn import SpreadingPredictor
from helpers import blocks_of

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')

fused = _compiled.fused
ON_GPU = torch.cuda.is_available()
PLACE = "cuda" if ON_GPU else "cpu"
SIZES = [(10, 5, 3), (100, 20, 1), (200, 60, 8)]


@pytest.fixture
def kernels(monkeypatch):
    if find_spec("triton") is None or not ON_GPU:
        pytest.skip("needs a CUDA GPU, and Triton")
    monkeypatch.setattr(fused, "PLACES", [PLACE])
    monkeypatch.setattr(fused, "FEWEST_ROWS", 1)
    monkeypatch.setattr(trial, "_found", {})
    monkeypatch.setattr(trial, "_told", False)
    plain = trial.launched  # each shape takes seconds to compile

    def in_one_shape(key, rows, shapes, *others):
        return plain(key, rows, shapes[:1], *others)

    for name in ("answer", "gaussian", "gram", "nearest"):
        monkeypatch.setattr(f"biglp._compiled.gpu.{name}_kernel.launched", in_one_shape)


def plain(monkeypatch):
    monkeypatch.setattr(fused, "PLACES", [])


def problem(m, k, dtype=torch.float32):
    rng = np.random.default_rng(m)
    rows = torch.as_tensor(rng.normal(size=(300, m)), dtype=dtype, device=PLACE)
    return rows, rng.normal(size=(k, m)).astype(np.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("m", "k", "count"), SIZES)
@pytest.mark.usefixtures("kernels")
def test_gaussian_and_nearest(m, k, count, dtype, monkeypatch):
    rows, landmarks = problem(m, k, dtype)
    found, bad = fused.gaussian(rows, landmarks, np.sqrt(m))
    columns, values = (part.cpu() for part in fused.nearest(rows, landmarks, count))
    assert not bool(bad)
    plain(monkeypatch)
    expected = gaussian(rows, landmarks, np.sqrt(m))
    np.testing.assert_allclose(found.cpu(), expected.cpu(), atol=3e-6)
    expected = [part.cpu() for part in nearest_landmarks(rows, landmarks, count)]
    np.testing.assert_allclose(values, expected[1], atol=2e-5 * m)
    assert (columns == expected[0]).float().mean() > 0.999


def features(k):
    found = torch.as_tensor(np.random.default_rng(k).random((300, k)), dtype=torch.float32)
    found[7] = 0
    return found.to(PLACE)


@pytest.mark.parametrize("k", [5, 20, 100])
@pytest.mark.usefixtures("kernels")
class TestSums:
    @pytest.mark.parametrize("in_place", [True, False])
    @pytest.mark.parametrize("ready", [True, False])
    def test_gram(self, k, in_place, ready, monkeypatch):
        found, n_rows = features(k), 300
        normalisation = Normalisation(to_numpy(found.double().sum(0)), n_rows)
        if not ready:
            found[11] = -found[11]  # its degree has to be repaired
        given = found.clone()
        gram, totals, repaired = normalisation.summed(found, in_place=in_place, ready=ready)
        plain(monkeypatch)
        expected, n_repaired = (given, 0) if ready else normalisation.apply(given)
        assert repaired == n_repaired == (not ready)
        torch.testing.assert_close(gram, gram_matrix(expected.double()), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(totals, expected.double().sum(0), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(found, expected if in_place else given)

    def test_column_sums_largest_and_shares(self, k, monkeypatch):
        found, rng = features(k), np.random.default_rng(0)
        sums = fused.column_sums(found)
        torch.testing.assert_close(sums, found.double().sum(0), rtol=1e-6, atol=0)
        few = found[:, :5].contiguous()
        few[3] = 0.5
        assert (fused.largest(few) == few.argmax(1)).all()
        assert fused.largest(few)[3] == 0
        found[9] = -found[9]
        coefficients, prior = rng.normal(size=(k, 3)) + 1.0, np.array([0.2, 0.3, 0.5])
        answer = SpreadingPredictor(coefficients, np.full(3, 0.1), prior)
        own = OwnLabels(np.array([3, 7]), np.eye(3)[[0, 1]], np.ones(2))
        got = [answer.outputs(found, None, one) for one in (None, own)]
        plain(monkeypatch)
        for (shares, unreached), one in zip(got, (None, own), strict=True):
            expected, n_unreached = answer.outputs(found, None, one)
            torch.testing.assert_close(shares, expected, rtol=1e-4, atol=1e-5)
            assert unreached == n_unreached == (one is None)


@pytest.mark.usefixtures("kernels")
def test_equal_distances_rows_that_are_not_finite_k_means_and_what_is_left_to_torch(monkeypatch):
    rows = torch.ones((20, 3), device=PLACE)
    columns, _ = fused.nearest(rows, np.ones((40, 3), dtype=np.float32), 3)
    assert (columns.cpu() == torch.arange(3)).all()  # of equally near landmarks the first
    rows, landmarks = problem(4, 6)
    for bad in (np.nan, np.inf, -np.inf):
        some = rows.clone()
        some[7, 2] = bad
        with pytest.raises(NonFiniteRowsError):
            gaussian(some, landmarks, 2.0)
        assert not nearest_landmarks(some, landmarks, 2)[1].isfinite().all()
    assert fused.gaussian(rows.double(), landmarks, 1.0) is None
    assert fused.gaussian(rows.T, landmarks, 1.0) is None
    assert fused.nearest(rows, landmarks, fused.MOST_NEAREST + 1) is None
    many = np.ones((fused.MOST_LANDMARKS + 1, 4), dtype=np.float32)
    assert fused.gaussian(rows, many, 1.0) is None
    X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    blocks = blocks_of(X, 100, device="cuda")
    found, _ = Lloyd(SerialEngine(), X, max_iter=3).run(blocks, X[:12])
    plain(monkeypatch)
    expected, _ = Lloyd(SerialEngine(), X, max_iter=3).run(blocks, X[:12])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_rows_of_a_processor_are_left_alone():
    rows, landmarks = problem(4, 6)
    for some in (rows.cpu(), rows.cpu().numpy()):
        assert fused.gaussian(some, landmarks, 1.0) is None
        assert fused.nearest(some, landmarks, 2) is None


class TestTrial:
    SHAPES = tuple(trial.Tiles(rows, 1, 1) for rows in (16, 32, 64))

    @pytest.fixture(autouse=True)
    def forget(self, monkeypatch):
        monkeypatch.setattr(trial, "_found", {})
        monkeypatch.setattr(trial, "_told", False)

    def launched(self, launch, agrees=lambda rows, found: found > 0):
        return trial.launched("key", torch.ones((8, 2)), self.SHAPES, launch, agrees)

    def test_the_fastest_of_those_that_agree_and_do_not_fail(self, monkeypatch):
        seconds = {16: 1.0, 32: 3.0, 64: 2.0}
        monkeypatch.setattr(trial, "_seconds", lambda rows, shape, launch: seconds[shape.rows])
        assert self.launched(lambda rows, shape: shape.rows, lambda rows, n: n != 16) == 64
        monkeypatch.setattr(trial, "_found", {})

        def launch(rows, shape):
            if shape.rows != 32:
                raise RuntimeError("out of resource: shared memory")
            return 32

        assert self.launched(launch) == 32

    def test_none_that_agrees_is_told_once(self):
        with pytest.warns(CardKernelWarning, match="no result agrees with plain torch"):
            assert self.launched(lambda rows, shape: 1, lambda rows, found: False) is None
        assert self.launched(lambda rows, shape: 1) is None

    def test_a_later_failure_goes_back_to_torch_and_a_full_gpu_is_another_matter(self):
        assert self.launched(lambda rows, shape: shape.rows) in (16, 32, 64)
        full = type("OutOfMemoryError", (RuntimeError,), {})
        with pytest.raises(full):
            self.launched(mock.Mock(side_effect=full("full")))
        with pytest.warns(CardKernelWarning, match="launch failed"):
            assert self.launched(mock.Mock(side_effect=RuntimeError("launch failed"))) is None
