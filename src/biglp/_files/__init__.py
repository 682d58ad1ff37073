"""Bytes on disks and in stores."""

from importlib import import_module
from typing import Any

# The room's door, for tests; loaded by need.
_MODULES = {
    "Copies": "copies",
    "IN_USE": "local",
    "RunFolder": "runfolder",
    "StorePath": "uri",
    "as_place": "uri",
    "atomic_write": "local",
    "copying_to": "copies",
    "hold": "local",
    "lock_file": "local",
    "object_store": "uri",
    "open_binary": "uri",
    "origin": "copies",
    "remove_held": "local",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
