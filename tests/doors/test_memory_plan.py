"""One plan of memory and time adds up what every part costs, on a card too; fits keep to it.

Without a card the processor stands in its place.
"""

from unittest import mock

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import (
    CardMemoryWarning,
    Cost,
    Device,
    MemoryBudgetError,
    ParameterError,
    Settings,
    Size,
    chosen_device,
)
from biglp._engines import SerialEngine
from biglp._fit import Machine, Pipeline, plan_gpu
from helpers import blobs, clear_rows

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')
FLOAT32 = np.dtype(np.float32)
MB = 1 << 20


# A card -------------------------------------------------------------------------------------------

DEVICE = "torch:cpu"
SETTINGS = {"n_landmarks": 12, "engine": "serial"}


def card_of(amount):
    return mock.patch("biglp._fit.plan.free_gpu_memory", return_value=amount)


def planned(amount, given=None, n_rows=1_000_000, gpu_row=400):
    machine = Machine(MB, SerialEngine(), Device(DEVICE, given))
    size = Size(n_rows, 100, 3, 10, 100.0, FLOAT32, gpu_row=gpu_row)
    with card_of(amount):
        return plan_gpu(Cost(row=1000, stored_row=80, gpu=MB), size, machine)


@pytest.mark.parametrize("given", [600, 1000, 8000])
def test_never_more_than_the_budget(given):
    for size in ({}, {"gpu_row": 0}, {"n_rows": 300}, {"n_rows": 50_000_000}):
        plan = planned(10_000 * MB, given=given * MB, **size)
        assert plan.expected <= plan.budget == given * MB
    with pytest.raises(MemoryBudgetError, match=r"gpu_memory=10 MB.*--gpu-memory \d+MB"):
        planned(4000 * MB, given=10 * MB)


def fit(X, y, amount=4000 * MB, **settings):
    with card_of(amount):
        return LowRankLabelPropagation(device=DEVICE, **SETTINGS, **settings).fit(X, y)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "linear"])
def test_rows_stay_on_the_card_until_the_answer(factor):
    X, y, _ = blobs(n=3000, dtype="float32")
    expected = LowRankLabelPropagation(factor=factor, **SETTINGS).fit(X, y)
    kept = fit(X, y, factor=factor)
    assert kept.report_["device"]["rows_stay"]
    assert kept.report_["device"]["name"] == DEVICE
    assert set(kept.report_["device"]["seconds"]) == {"graph", "sums", "learning", "answers"}
    clear = clear_rows(expected.label_distributions_, 1e-4)
    np.testing.assert_array_equal(kept.transduction_[clear], expected.transduction_[clear])
    assert not any("rows" in block.memory for block in kept._problem.graph.blocks)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
def test_a_full_card_goes_on_in_smaller_blocks_and_says_so():
    X, y, _ = blobs(n=3000, dtype="float32")
    expected = fit(X, y, factor="nystrom")
    full, sums = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"}), []
    found = Pipeline.problem

    def problem(pipeline, graphs, labels):
        sums.append(graphs[0].blocks[0].n_rows)
        if len(sums) < 2:
            raise full("CUDA out of memory")
        return found(pipeline, graphs, labels)

    with (
        mock.patch.object(Pipeline, "problem", problem),
        pytest.warns(CardMemoryWarning, match=r"torch:cpu has less memory.*--gpu-memory"),
    ):
        model = fit(X, y, factor="nystrom")
    assert sums[1] < sums[0] // 2
    assert not model.report_["device"]["rows_stay"]
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)
    with (
        mock.patch.object(Pipeline, "problem", side_effect=RuntimeError("no")),
        pytest.raises(RuntimeError, match="no"),
    ):
        fit(X, y)


def test_which_device_is_chosen():
    def chosen(asked, place="cpu", n_rows=1000, has_card=True, number=0):
        with mock.patch("biglp._core.device._has_card", return_value=has_card):
            return chosen_device(asked, place, 60.0 * n_rows, number)

    # "auto" takes a card that is there for work that is worth it.
    assert chosen("auto", n_rows=10**9) == "cuda"
    assert chosen("auto", n_rows=10**9, has_card=False) == "cpu"
    assert chosen("auto") == "cpu"
    for asked in ("auto", "cuda", "cuda:1"):
        assert chosen(asked, "cuda:1") == "cuda:1"  # rows on a card are worked on there
    for asked in ("cpu", "cuda:0"):
        with pytest.raises(ParameterError, match=r"X is on cuda:1, but device=.*X\.cpu\(\)"):
            chosen(asked, "cuda:1")
    # Processes on one machine take one card after another.
    with mock.patch.object(torch.cuda, "device_count", return_value=2):
        found = [chosen("cuda", number=number) for number in range(4)]
    assert [place.removeprefix("cuda").removeprefix(":") or "0" for place in found] == [*"0101"]


def test_precision_is_a_switch_of_torch_and_put_back():
    products = torch.backends.cuda.matmul
    before = products.allow_tf32
    for precision in ("float32", "tf32"):
        with Device(DEVICE, None, precision).precisely():
            assert products.allow_tf32 == (precision == "tf32")
        assert products.allow_tf32 == before
    with pytest.raises(ParameterError, match=r"precision='half'.*float32, tf32"):
        Settings.of({"precision": "half"})
    with pytest.raises(ParameterError, match="gpu_memory='much' is not an amount"):
        Settings.of({"gpu_memory": "much"})
