"""What all rooms stand on: arrays, devices, blocks, memory, parameters, progress, errors."""

from importlib import import_module
from typing import Any

# The room's door, for tests; loaded by need, as help texts do without NumPy.
_MODULES = {
    "LogProgress": "progress",
    "PARAMETERS": "parameters",
    "Progress": "progress",
    "Registry": "registry",
    "Settings": "settings",
    "Task": "progress",
    "WholeRun": "progress",
    "cut_rows": "blocks",
    "parse_memory": "memory",
    "private_memory": "memory",
    "rows_per_block": "blocks",
    "shown_progress": "progress",
    "to_numpy": "arrays",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    # The tree of errors is one topic: all of it is here.
    module = "errors" if name.endswith(("Error", "Warning")) else _MODULES.get(name)
    if module is None:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{module}"), name)
