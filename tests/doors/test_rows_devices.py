"""Rows on a device, with tensors on the processor in its place."""

import pickle
from unittest import mock

import numpy as np
import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BadRowsError, LabelError, ParameterError
from biglp._labels import encode_labels
from biglp._rows import PreparedRows, as_source
from biglp._transforms import Chain, Project, Scale
from helpers import blobs

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')
DEVICE, N_LANDMARKS = "torch:cpu", 12
pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


def as_rows(tensor, **options):
    """Open a tensor as if it were on a GPU."""
    with mock.patch(f"{as_source.__module__}.device_tensor", return_value=tensor):
        return as_source(tensor, **options)


def data(dtype="float32", n=400):
    X, y, _ = blobs(n=n, dtype="float32")
    tensor = torch.as_tensor(X).to(getattr(torch, dtype))
    return tensor, tensor.float().numpy(), y


def prepared(tensor, chain=None):
    return PreparedRows(as_rows(tensor), np.dtype(np.float32), chain, device=DEVICE)


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


@pytest.mark.parametrize("kind", ["none", "standard", "minmax", "log", "unit", "table"])
def test_scaling_is_that_of_the_processor(kind):
    tensor, X, _ = data()
    chain = Chain([Scale(kind), Project(3)]).fit(X)
    expected = chain.apply(X[:50])
    np.testing.assert_allclose(prepared(tensor, chain).read(0, 50), expected, atol=2e-6)


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
    """An array of another library, on the processor (1) or on a card (2)."""

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
    found = LowRankLabelPropagation(device=DEVICE, **settings).fit(source, y)
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


def test_texts_as_classes_and_targets():
    tensor, X, y = data()
    names = np.array(["", "a", "b", "c"])[y + 1]
    found = LowRankLabelPropagation(device=DEVICE, n_landmarks=N_LANDMARKS)
    found.fit(as_rows(tensor), names)
    assert set(found.transduction_) <= {"a", "b", "c"}
    assert torch.is_tensor(found.label_distributions_)
    target = np.where(y < 0, np.nan, X[:, 0])
    found, expected = (
        LowRankLabelPropagationRegressor(device=place, n_landmarks=N_LANDMARKS).fit(rows, target)
        for place, rows in ((DEVICE, as_rows(tensor)), ("cpu", X))
    )
    assert torch.is_tensor(found.transduction_)
    np.testing.assert_allclose(found.transduction_, expected.transduction_, atol=1e-4)


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
