"""A fit from checked parameters to a model."""

from importlib import import_module
from typing import Any

# The room's door, for tests; loaded by need.
_MODULES = {
    "GPU_LIBRARY_BYTES": "plan",
    "Machine": "plan",
    "Model": "model",
    "Pipeline": "pipeline",
    "Report": "report",
    "plan_fit": "plan",
    "plan_gpu": "plan",
    "relabelled": "update",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
