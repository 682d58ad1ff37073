"""What several tests of sinks need."""

from __future__ import annotations

import numpy as np
import pytest

from sink_tools import CLASSES


@pytest.fixture(params=CLASSES)
def classes(request) -> np.ndarray:
    """Classes of every type that a file can hold."""
    return CLASSES[request.param]
