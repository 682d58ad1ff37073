"""What is free on a GPU decides how large its blocks are; run where there is one."""

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.memory import free_gpu_memory

torch = pytest.importorskip("torch")
LEFT_BYTES = 1 << 30


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_fit_takes_what_is_free_on_the_card():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400_000, 40), dtype=np.float32)
    y = np.where(np.arange(len(X)) < 200, np.arange(len(X)) % 3, -1)
    X[:, 0] += np.arange(len(X)) % 3
    model = LowRankLabelPropagation(factor="nystrom", n_landmarks=200, device="cuda")
    expected = model.fit(X, y).transduction_
    torch.cuda.empty_cache()
    others = torch.empty(
        torch.cuda.mem_get_info()[0] - LEFT_BYTES, dtype=torch.uint8, device="cuda"
    )
    before, free = torch.cuda.memory_allocated(), free_gpu_memory("cuda")
    torch.cuda.reset_peak_memory_stats()
    found = model.fit(X, y).transduction_
    assert torch.cuda.max_memory_allocated() - before <= free
    assert (found == expected).mean() > 0.9999
    del others
