"""Whole fits with the compiled sweeps."""

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp import _compiled as compiled
from biglp._core.errors import MissingExtraError
from helpers import blobs


@pytest.fixture
def always(monkeypatch):
    """Let a small fit use the loops."""
    if not compiled.can_run():
        pytest.skip("llvmlite or AVX2 is not here")
    monkeypatch.setattr(compiled, "WORTHWHILE", 0)


def fitted(X, y, **parameters):
    parameters = {
        "factor": "nystrom",
        "n_landmarks": 40,
        "alpha": 0.9,
        "scaling": "none",
        **parameters,
    }
    return LowRankLabelPropagation(random_state=0, **parameters).fit(X, y)


@pytest.mark.parametrize("bandwidth", ["auto", 5.0])
def test_labels_are_those_of_numpy(always, monkeypatch, bandwidth):
    X, y, _ = blobs(n=3000)
    found = fitted(X, y, bandwidth=bandwidth)
    monkeypatch.setattr(compiled, "WORTHWHILE", np.inf)
    expected = fitted(X, y, bandwidth=bandwidth)
    assert found.report_["sweeps"] == "compiled"
    assert "sweeps" not in expected.report_
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, atol=1e-6)


def test_any_engine_gives_the_same_bits(always):
    X, y, _ = blobs(n=3000)
    one, two = (fitted(X.astype(np.float32), y, engine=engine) for engine in ("serial", "threads"))
    assert np.array_equal(one.label_distributions_, two.label_distributions_)


def test_a_process_without_the_compiler_says_what_to_install(monkeypatch):
    monkeypatch.setattr(compiled, "can_run", lambda: False)
    with pytest.raises(MissingExtraError, match=r"biglp\[fast\]"):
        compiled.compiled_blocks()
