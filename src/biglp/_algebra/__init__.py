"""Small algebra on r × r numbers: no rows, no engine, no file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {
    "GramSums": "sums",
    "LabelledRows": "spreading",
    "Posterior": "posterior",
    "SparseSystem": "systems",
    "Spectrum": "systems",
    "blend": "ridge",
    "choose_batch": "posterior",
    "constant_mode": "spreading",
    "fit_ridge": "ridge",
    "held_out_values": "ridge",
    "iterate": "spreading",
    "leave_one_out": "spreading",
    "leave_one_out_poisson": "spreading",
    "poisson_coefficients": "spreading",
    "share_offsets": "balance",
    "take_apart": "systems",
    "without_noise": "spreading",
}
"""The door: each name with its module, which is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
