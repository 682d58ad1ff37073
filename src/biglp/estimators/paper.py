"""The paper's own settings."""

from __future__ import annotations

from typing import Any

WIDE = {"bandwidth_factor": 1.0}
PAPER_METHODS: dict[str, dict[str, Any]] = {
    "nystrom-random": {"factor": "nystrom", "landmarks": "random", "factor_params": WIDE},
    "nystrom-kmeans": {"factor": "nystrom", "landmarks": "kmeans", "factor_params": WIDE},
    "glnp-mu": {"factor": "glnp-mu", "factor_params": {"start": "uniform"}},
    "glnp-apgd": {"factor": "glnp", "factor_params": {"start": "uniform"}},
    "linear": {"factor": "linear"},
}
