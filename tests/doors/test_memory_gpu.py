"""The plan of a card's memory, and fits that keep to it, with the processor in the card's place."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import CardMemoryWarning, MemoryBudgetError, ParameterError, device
from biglp._core.device import Device, upload
from biglp._core.settings import Settings
from biglp._core.size import Cost, Size
from biglp._engines import SerialEngine
from biglp._fit import pipeline as preparing
from biglp._fit import plan
from biglp._fit.pipeline import Pipeline
from biglp._fit.plan import GPU_LIBRARY_BYTES, Machine, plan_fit, plan_gpu
from biglp._rows import prepared
from biglp._rows.arrays import TensorSource
from helpers import blobs, clear_rows

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')

DEVICE = "torch:cpu"
MB = 1 << 20
COST = Cost(row=1000, stored_row=80, gpu=MB)


def size_of(n_rows=1_000_000, gpu_row=400):
    return Size(n_rows, 100, 3, 10, 100.0, np.dtype(np.float32), gpu_row=gpu_row)


def card_of(amount):
    """A card with so much free memory."""
    return mock.patch.object(plan, "free_gpu_memory", return_value=amount)


def machine(given=None):
    return Machine(MB, SerialEngine(), Device(DEVICE, given))


def planned(amount, given=None, **size):
    with card_of(amount):
        return plan_gpu(COST, size_of(**size), machine(given))


class TestPlan:
    def test_none_without_a_card(self):
        assert plan_gpu(COST, size_of(), machine()) is None

    def test_rows_and_features_stay_where_they_fit(self):
        plan = planned(4000 * MB)
        assert (plan.rows, plan.features) == (400_000_000, 80_000_000)
        assert plan.expected <= plan.budget == int(0.8 * 4000 * MB)

    def test_rows_come_before_features_and_blocks_before_both(self):
        fits = planned(4000 * MB)
        less = planned(4000 * MB, given=GPU_LIBRARY_BYTES + fits.rows + 200 * MB)
        assert (less.rows > 0, less.features > 0) == (True, False)
        least = planned(4000 * MB, given=GPU_LIBRARY_BYTES + 100 * MB)
        assert (least.rows, least.features) == (0, 80_000_000 * (least.features > 0))
        assert all(plan.expected <= plan.budget for plan in (fits, less, least))

    @pytest.mark.parametrize("given", [600, 800, 1000, 2000, 8000])
    def test_never_more_than_the_budget(self, given):
        for size in ({}, {"gpu_row": 0}, {"n_rows": 300}, {"n_rows": 50_000_000}):
            plan = planned(10_000 * MB, given=given * MB, **size)
            assert plan.expected <= plan.budget == given * MB

    def test_rows_that_are_there_take_nothing_and_come_in_few_blocks(self):
        plan = planned(100_000 * MB, gpu_row=0)
        assert (plan.rows, plan.workers, plan.rows_each) == (0, 1, 1_000_000)

    def test_too_little_is_refused_with_what_would_do(self):
        with pytest.raises(MemoryBudgetError, match=r"gpu_memory=10 MB.*--gpu-memory \d+MB"):
            planned(4000 * MB, given=10 * MB)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
class TestFit:
    SETTINGS = {"n_landmarks": 12, "engine": "serial"}  # noqa: RUF012

    def fit(self, X, y, amount, **settings):
        """A fitted model, and how many rows the sweeps have copied to the device."""
        model = LowRankLabelPropagation(device=DEVICE, **self.SETTINGS, **settings)
        with card_of(amount), mock.patch.object(prepared, "upload", side_effect=upload) as copied:
            model.fit(X, y)
        return model, sum(len(call.args[1]) for call in copied.call_args_list)

    @pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "linear"])
    def test_rows_are_brought_once_where_they_fit(self, factor):
        X, y, _ = blobs(n=3000, dtype="float32")
        expected = LowRankLabelPropagation(factor=factor, **self.SETTINGS).fit(X, y)
        kept, n_copied = self.fit(X, y, 4000 * MB, factor=factor)
        assert n_copied < 2 * len(X)  # all rows once, and a few for their usual distances
        assert kept.report_["device"]["rows_stay"]
        found = preparing.size_of_transformed
        too_large = mock.patch.object(
            preparing, "size_of_transformed", lambda *given: replace(found(*given), gpu_row=1 << 40)
        )
        with too_large:
            streamed, n_streamed = self.fit(X, y, 4000 * MB, factor=factor)
        assert not streamed.report_["device"]["rows_stay"]
        kept_features = factor in ("nystrom", "anchors")  # the others look at the rows again
        assert n_streamed == n_copied if kept_features else n_streamed >= n_copied + len(X)
        clear = clear_rows(expected.label_distributions_, 1e-4)
        for found in (kept, streamed):
            np.testing.assert_array_equal(found.transduction_[clear], expected.transduction_[clear])
        assert not any("rows" in block.memory for block in kept._problem.graph.blocks)

    def test_a_full_card_goes_on_in_smaller_blocks_and_says_so(self):
        X, y, _ = blobs(n=3000, dtype="float32")
        expected, _ = self.fit(X, y, 4000 * MB, factor="nystrom")
        full, sums = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"}), []

        def problem(pipeline, graphs, labels):
            sums.append(graphs[0].blocks[0].n_rows)
            if len(sums) < 2:
                raise full("CUDA out of memory")
            return found(pipeline, graphs, labels)

        found = Pipeline.problem
        with (
            mock.patch.object(Pipeline, "problem", problem),
            pytest.warns(CardMemoryWarning, match=r"torch:cpu has less memory.*--gpu-memory"),
        ):
            model, _ = self.fit(X, y, 4000 * MB, factor="nystrom")
        assert sums[1] < sums[0] // 2
        assert not model.report_["device"]["rows_stay"]
        np.testing.assert_array_equal(model.transduction_, expected.transduction_)

    def test_other_errors_are_not_caught(self):
        X, y, _ = blobs(n=300, dtype="float32")
        with (
            mock.patch.object(Pipeline, "problem", side_effect=RuntimeError("no")),
            pytest.raises(RuntimeError, match="no"),
        ):
            self.fit(X, y, 4000 * MB)

    def test_the_report_says_where_and_how_long(self):
        X, y, _ = blobs(n=300, dtype="float32")
        on_device, _ = self.fit(X, y, 4000 * MB)
        found = on_device.report_["device"]
        assert found["name"] == DEVICE
        assert set(found["seconds"]) == {"graph", "sums", "learning", "answers"}
        assert "device" not in LowRankLabelPropagation(**self.SETTINGS).fit(X, y).report_


class TestChosenDevice:
    def source(self, n_rows=1000, place="cpu"):
        source = TensorSource(torch.ones((2, 3)))
        source.n_rows, source.device = n_rows, place
        return source

    def chosen(self, asked, source, has_card=True, number=0):
        with mock.patch.object(device, "_has_card", return_value=has_card):
            work = 60.0 * source.n_rows
            return device.chosen_device(asked, source.device, work, number)

    def test_auto_takes_a_card_that_is_there_for_work_that_is_worth_it(self):
        much, little = self.source(10**9), self.source()
        assert self.chosen("auto", much) == "cuda"
        assert self.chosen("auto", much, has_card=False) == "cpu"
        assert self.chosen("auto", little) == "cpu"

    def test_rows_on_a_card_are_worked_on_there(self):
        for asked in ("auto", "cuda", "cuda:1"):
            assert self.chosen(asked, self.source(place="cuda:1")) == "cuda:1"
        for asked in ("cpu", "cuda:0"):
            with pytest.raises(ParameterError, match=r"X is on cuda:1, but device=.*X\.cpu\(\)"):
                self.chosen(asked, self.source(place="cuda:1"))

    def test_processes_on_one_machine_take_one_card_after_another(self):
        with mock.patch.object(torch.cuda, "device_count", return_value=2):
            found = [self.chosen("cuda", self.source(), number=number) for number in range(4)]
        assert [place.removeprefix("cuda").removeprefix(":") or "0" for place in found] == [
            "0",
            "1",
            "0",
            "1",
        ]

    def test_a_computer_without_a_card_takes_the_processor(self):
        X, y, _ = blobs(n=300)
        with mock.patch.object(device, "AUTO_WORK", 0):
            found = LowRankLabelPropagation(device="auto", n_landmarks=12).fit(X, y)
        if not torch.cuda.is_available():
            expected = LowRankLabelPropagation(n_landmarks=12).fit(X, y)
            np.testing.assert_array_equal(found.label_distributions_, expected.label_distributions_)

    def test_precision_is_a_switch_of_torch_and_put_back(self):
        products = torch.backends.cuda.matmul
        before = products.allow_tf32
        for precision in ("float32", "tf32"):
            place = Device(DEVICE, None, precision)
            with place.precisely():
                assert products.allow_tf32 == (precision == "tf32")
            assert products.allow_tf32 == before
        with pytest.raises(ParameterError, match=r"precision='half'.*float32, tf32"):
            Settings.of({"precision": "half"})
        with pytest.raises(ParameterError, match="gpu_memory='much' is not an amount"):
            Settings.of({"gpu_memory": "much"})


def test_the_host_needs_buffers_only():
    big = Size(100_000_000, 100, 4, 10, 100.0, np.dtype(np.float32), gpu_row=400)
    given = {"factor": "nystrom", "n_landmarks": 20, "device": DEVICE, "memory": "4GB"}
    settings = Settings.of(given)
    with card_of(1 << 37):
        found = plan_fit(settings, big, SerialEngine())
    assert found.gpu is not None
    assert found.gpu.rows > 0
    assert found.stores_features
    assert found.expected < 2 << 30
