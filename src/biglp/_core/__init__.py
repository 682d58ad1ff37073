"""What all rooms stand on: arrays, devices, blocks, memory, parameters, progress, errors."""

from importlib import import_module
from typing import Any

# The door, for tests and for parts of others; loaded by need, as help texts do without NumPy.
_MODULES = {
    "Block": "blocks",
    "Cost": "size",
    "Cut": "blocks",
    "EFFORTS": "parameters",
    "LogProgress": "progress",
    "Progress": "progress",
    "Registry": "registry",
    "RowEntries": "arrays",
    "Settings": "settings",
    "Size": "size",
    "Task": "progress",
    "WholeRun": "progress",
    "check_finite": "arrays",
    "cut_rows": "blocks",
    "like": "arrays",
    "namespace": "arrays",
    "parse_memory": "memory",
    "positive_integer": "parameters",
    "private_memory": "memory",
    "rows_per_block": "blocks",
    "shown_progress": "progress",
    "to_dense": "arrays",
    "to_numpy": "arrays",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    # The tree of errors is one topic: all of it is here.
    module = "errors" if name.endswith(("Error", "Warning")) else _MODULES.get(name)
    if module is None:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{module}"), name)
