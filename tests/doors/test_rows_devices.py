"""Rows that are elsewhere: on a device, with tensors on the processor in its place, and in Dask."""

import pickle
from unittest import mock

import numpy as np
import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BadRowsError, LabelError, ParameterError, arrays
from biglp._core.arrays import device_tensor, is_torch
from biglp._labels import encode_labels
from biglp._labels import labels as labelling
from biglp._rows import PreparedRows, as_source
from biglp._transforms import Chain, Project, Scale
from helpers import blobs

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')


DEVICE = "torch:cpu"


N_LANDMARKS = 12


def as_rows(tensor, **options):
    """Open a tensor as if it were on a GPU."""
    with mock.patch("biglp._rows.opening.device_tensor", return_value=tensor):
        return as_source(tensor, **options)


def data(dtype="float32", n=400):
    X, y, truth = blobs(n=n, dtype="float32")
    tensor = torch.as_tensor(X).to(getattr(torch, dtype))
    return tensor, tensor.float().numpy(), y, truth


class TestSource:
    def test_rows_are_views_and_never_copied(self):
        tensor, X, _, _ = data()
        prepared = PreparedRows(as_rows(tensor), np.dtype(np.float32), device=DEVICE)
        assert prepared.read(5, 9).data_ptr() == tensor[5:].data_ptr()
        np.testing.assert_array_equal(prepared.take(np.array([1, 7])), X[[1, 7]])

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_half_precision_is_widened_where_it_is_worked_on(self, dtype):
        tensor, X, _, _ = data(dtype)
        prepared = PreparedRows(as_rows(tensor), np.dtype(np.float32), device=DEVICE)
        assert prepared.stored(0, 4).data_ptr() == tensor.data_ptr()
        assert prepared.read(0, 4).dtype == torch.float32
        np.testing.assert_array_equal(prepared.read(0, 4), X[:4])

    @pytest.mark.parametrize("kind", ["none", "standard", "minmax", "log", "unit", "table"])
    def test_scaling_is_that_of_the_processor(self, kind):
        tensor, X, _, _ = data()
        chain = Chain([Scale(kind), Project(3)]).fit(X)
        source = PreparedRows(as_rows(tensor), np.dtype(np.float32), chain, DEVICE)
        np.testing.assert_allclose(source.read(0, 50), chain.apply(X[:50]), atol=2e-6)

    def test_what_cannot_be_rows(self):
        with pytest.raises(BadRowsError, match="two-dimensional"):
            as_rows(torch.ones(3))
        with pytest.raises(BadRowsError, match="complex64, which cannot be used"):
            as_rows(torch.ones((3, 2), dtype=torch.complex64))
        with pytest.raises(ParameterError, match=r"missing='mean'.*X\.cpu\(\)"):
            as_rows(torch.ones((3, 2)), missing="mean")


class Foreign:
    """An array of another library."""

    def __init__(self, tensor, kind):
        self._tensor, self._kind = tensor, kind

    def __dlpack_device__(self):
        return self._kind, 0


class TestOtherLibraries:
    def test_arrays_on_a_card_are_taken_without_a_copy(self):
        tensor = torch.ones((3, 2))
        foreign = Foreign(tensor, 2)
        with (
            mock.patch.object(arrays, "require_device"),
            mock.patch.object(torch, "from_dlpack", return_value=tensor) as taken,
        ):
            assert device_tensor(foreign) is tensor
        taken.assert_called_once_with(foreign)

    def test_arrays_in_the_computers_memory_are_not_concerned(self):
        for array in (np.ones(2), torch.ones(2), Foreign(torch.ones(2), 1), [1, 2], None):
            assert device_tensor(array) is None


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
class TestEstimators:
    @pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
    @pytest.mark.parametrize("factor", ["auto", "nystrom"])
    def test_answers_stay_where_the_rows_are(self, factor, dtype):
        tensor, X, y, _ = data(dtype)
        settings = {"factor": factor, "n_landmarks": N_LANDMARKS}
        source = as_rows(tensor)
        found = LowRankLabelPropagation(device=DEVICE, **settings).fit(source, y)
        expected = LowRankLabelPropagation(**settings).fit(X, y)
        probabilities = found.predict_proba(source)
        assert all(is_torch(each) for each in (found.transduction_, probabilities))
        np.testing.assert_array_equal(found.transduction_, expected.transduction_)
        np.testing.assert_allclose(
            found.label_distributions_, expected.label_distributions_, atol=1e-5
        )
        np.testing.assert_allclose(probabilities, expected.predict_proba(X), atol=1e-5)
        np.testing.assert_array_equal(found.suggest(3), expected.suggest(3))
        again = found.update_labels([399], [y.max()])
        assert is_torch(again.transduction_)
        assert isinstance(pickle.loads(pickle.dumps(again)).transduction_, np.ndarray)

    def test_classes_that_are_no_numbers_are_an_array(self):
        tensor, _, y, _ = data()
        names = np.array(["", "a", "b", "c"])[y + 1]
        found = LowRankLabelPropagation(device=DEVICE, n_landmarks=N_LANDMARKS)
        found.fit(as_rows(tensor), names)
        assert set(found.transduction_) <= {"a", "b", "c"}
        assert is_torch(found.label_distributions_)

    def test_regression(self):
        tensor, X, y, _ = data()
        target = np.where(y < 0, np.nan, X[:, 0])
        found, expected = (
            LowRankLabelPropagationRegressor(device=place, n_landmarks=N_LANDMARKS)
            for place in (DEVICE, "cpu")
        )
        found.fit(as_rows(tensor), target)
        assert is_torch(found.transduction_)
        np.testing.assert_allclose(
            found.transduction_, expected.fit(X, target).transduction_, atol=1e-4
        )

    def test_rows_on_a_device_want_it(self):
        tensor, _, y, _ = data()
        with pytest.raises(ParameterError, match=r"X is on torch:cpu, but device='cpu'"):
            LowRankLabelPropagation().fit(as_rows(tensor), y)


class TestLabels:
    def encode(self, y, n_rows=None, **options):
        """Encode labels as if they were on a card."""
        tensor = torch.as_tensor(y)
        with mock.patch.object(labelling, "device_tensor", return_value=tensor):
            return encode_labels(tensor, len(y) if n_rows is None else n_rows, **options)

    @pytest.mark.parametrize("unknown", [-1, np.nan])
    def test_only_labelled_rows_leave_the_card(self, unknown):
        y = np.array([unknown, 3, unknown, 5, 3])
        found, expected = self.encode(y), encode_labels(y, 5)
        for name in ("classes", "rows", "codes"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        weights = np.arange(5.0)
        weighted = self.encode(y, sample_weight=weights)
        np.testing.assert_array_equal(weighted.weights, [1, 3, 4])

    def test_what_cannot_be_labels(self):
        with pytest.raises(LabelError, match=r"y has shape \(2,\) but X has 3 rows"):
            self.encode([0, 1], n_rows=3)
        with pytest.raises(LabelError, match="only one class"):
            self.encode([1, 1, -1])
