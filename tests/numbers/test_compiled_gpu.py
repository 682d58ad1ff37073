"""Triton's kernels against plain torch on a card; without one, only that they are left alone.

Triton's interpreter has no bfloat16, of which the products are made.
"""

from importlib.util import find_spec
from unittest import mock

import numpy as np
import pytest

from biglp._compiled import gpu as fused
from biglp._compiled import gram_matrix
from biglp._compiled.gpu import trial
from biglp._compiled.gpu.trial import Tiles, launched
from biglp._core import CardKernelWarning, NonFiniteRowsError
from biglp._core.arrays import to_numpy
from biglp._graph import Normalisation
from biglp._graph.kernels import gaussian, nearest_landmarks
from biglp._graph.landmarks import assign_block
from biglp._labels.labels import OwnLabels
from biglp._learn.spreading import SpreadingPredictor
from helpers import blocks_of

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')

ON_CARD = torch.cuda.is_available()
PLACE = "cuda" if ON_CARD else "cpu"
SIZES = [(10, 5, 3), (100, 20, 1), (200, 60, 8)]


@pytest.fixture
def kernels(monkeypatch):
    """Kernels for small blocks, in one shape, so that nothing is timed."""
    if find_spec("triton") is None or not ON_CARD:
        pytest.skip("needs a CUDA GPU, and Triton")
    from biglp._compiled.gpu import answer as answer_kernel
    from biglp._compiled.gpu import gaussian as gaussian_kernel
    from biglp._compiled.gpu import gram as gram_kernel
    from biglp._compiled.gpu import nearest as nearest_kernel

    monkeypatch.setattr(fused, "PLACES", [PLACE])
    monkeypatch.setattr(fused, "FEWEST_ROWS", 1)
    monkeypatch.setattr(trial, "_found", {})
    monkeypatch.setattr(trial, "_told", False)
    for module in (answer_kernel, gaussian_kernel, gram_kernel, nearest_kernel):
        for name in [name for name in vars(module) if name.endswith("SHAPES")]:
            monkeypatch.setattr(module, name, getattr(module, name)[:1])  # each takes seconds


def plain(monkeypatch):
    """From now on plain torch only."""
    monkeypatch.setattr(fused, "PLACES", [])


def problem(m, k, dtype):
    rng = np.random.default_rng(m)
    rows = torch.as_tensor(rng.normal(size=(300, m)), dtype=dtype, device=PLACE)
    return rows, rng.normal(size=(k, m)).astype(np.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("m", "k", "count"), SIZES)
@pytest.mark.usefixtures("kernels")
class TestKernels:
    def test_gaussian(self, m, k, count, dtype, monkeypatch):
        rows, landmarks = problem(m, k, dtype)
        found, bad = fused.gaussian(rows, landmarks, np.sqrt(m))
        plain(monkeypatch)
        np.testing.assert_allclose(
            found.cpu(), gaussian(rows, landmarks, np.sqrt(m)).cpu(), atol=3e-6
        )
        assert not bool(bad)

    def test_nearest(self, m, k, count, dtype, monkeypatch):
        rows, landmarks = problem(m, k, dtype)
        columns, values = (part.cpu() for part in fused.nearest(rows, landmarks, count))
        plain(monkeypatch)
        expected = [part.cpu() for part in nearest_landmarks(rows, landmarks, count)]
        np.testing.assert_allclose(values, expected[1], atol=2e-5 * m)
        assert (columns == expected[0]).float().mean() > 0.999


def features(k):
    """Kernel-like features of some rows, one of which has none."""
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

    def test_column_sums(self, k):
        found = features(k)
        torch.testing.assert_close(
            fused.column_sums(found), found.double().sum(0), rtol=1e-6, atol=0
        )

    def test_shares(self, k, monkeypatch):
        found, rng = features(k), np.random.default_rng(0)
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

    def test_largest(self, k):
        found = features(k)[:, :5].contiguous()
        found[3] = 0.5
        assert (fused.largest(found) == found.argmax(1)).all()
        assert fused.largest(found)[3] == 0


@pytest.mark.usefixtures("kernels")
class TestWhereTheyAreUsed:
    def test_of_equally_near_landmarks_the_first(self):
        rows = torch.ones((20, 3), device=PLACE)
        columns, _ = fused.nearest(rows, np.ones((40, 3), dtype=np.float32), 3)
        assert columns.tolist() == [[0, 1, 2]] * 20

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_rows_that_are_not_finite_are_found(self, bad):
        rows, landmarks = problem(4, 6, torch.float32)
        assert fused.gaussian(rows, landmarks, 2.0) is not None
        assert fused.nearest(rows, landmarks, 2) is not None
        rows[7, 2] = bad
        with np.errstate(all="ignore"):  # the interpreter works with NumPy
            with pytest.raises(NonFiniteRowsError):
                gaussian(rows, landmarks, 2.0)
            assert not nearest_landmarks(rows, landmarks, 2)[1].isfinite().all()

    def test_k_means(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 8)).astype(np.float32)
        (block,) = blocks_of(X, 300, device="cuda" if ON_CARD else "torch:cpu")
        found = assign_block(block, X[:12])
        plain(monkeypatch)
        for one, other in zip(found, assign_block(block, X[:12]), strict=True):
            np.testing.assert_allclose(one.cpu(), other.cpu(), rtol=1e-5, atol=1e-5)

    def test_what_is_too_large_or_of_another_type_is_left_to_torch(self):
        rows, landmarks = problem(4, 6, torch.float32)
        assert fused.gaussian(rows.double(), landmarks, 1.0) is None
        assert fused.gaussian(rows.T, landmarks, 1.0) is None
        assert fused.nearest(rows, landmarks, fused.MOST_NEAREST + 1) is None
        many = np.ones((fused.MOST_LANDMARKS + 1, 4), dtype=np.float32)
        assert fused.gaussian(rows, many, 1.0) is None


def test_rows_of_a_processor_are_left_alone():
    rows, landmarks = problem(4, 6, torch.float32)
    for some in (rows.cpu(), rows.cpu().numpy()):
        assert fused.gaussian(some, landmarks, 1.0) is None
        assert fused.nearest(some, landmarks, 2) is None


class TestTrial:
    SHAPES = tuple(Tiles(rows, 1, 1) for rows in (16, 32, 64))

    @pytest.fixture(autouse=True)
    def forget(self, monkeypatch):
        monkeypatch.setattr(trial, "_found", {})
        monkeypatch.setattr(trial, "_told", False)

    def launched(self, launch, agrees=lambda rows, found: found > 0):
        return launched("key", torch.ones((8, 2)), self.SHAPES, launch, agrees)

    def test_the_fastest_of_those_that_agree(self):
        seconds = {16: 1.0, 32: 3.0, 64: 2.0}
        timed = mock.patch.object(
            trial, "_seconds", lambda rows, shape, launch: seconds[shape.rows]
        )
        with timed:
            agreeing = lambda rows, found: found != 16  # noqa: E731
            assert self.launched(lambda rows, shape: shape.rows, agreeing) == 64

    def test_shapes_that_fail_are_left_out(self):
        def launch(rows, shape):
            if shape.rows != 32:
                raise RuntimeError("out of resource: shared memory")
            return 32

        assert self.launched(launch) == 32

    def test_none_that_agrees_is_told_once(self):
        with pytest.warns(CardKernelWarning, match="no result agrees with plain torch"):
            assert self.launched(lambda rows, shape: 1, lambda rows, found: False) is None
        assert self.launched(lambda rows, shape: 1) is None

    def test_a_later_failure_goes_back_to_torch(self):
        assert self.launched(lambda rows, shape: shape.rows) in (16, 32, 64)

        def broken(rows, shape):
            raise RuntimeError("launch failed")

        with pytest.warns(CardKernelWarning, match="launch failed"):
            assert self.launched(broken) is None

    def test_a_full_card_is_another_matter(self):
        full = type("OutOfMemoryError", (RuntimeError,), {})
        self.launched(lambda rows, shape: 1)
        with pytest.raises(full):
            self.launched(mock.Mock(side_effect=full("full")))
