"""What all rooms stand on: arrays, devices, blocks, memory, parameters, progress, errors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

# The door, for tests and for parts of others; loaded by need, as help texts do without NumPy.
_MODULES = {
    "Block": "blocks",
    "Cost": "size",
    "Cut": "blocks",
    "Device": "device",
    "EFFORTS": "size",
    "LogProgress": "progress",
    "PARAMETERS": "parameters",
    "Progress": "progress",
    "RowEntries": "arrays",
    "Settings": "settings",
    "Size": "size",
    "Task": "progress",
    "WholeRun": "progress",
    "check_finite": "arrays",
    "chosen_device": "device",
    "cut_rows": "blocks",
    "like": "arrays",
    "namespace": "arrays",
    "parse_memory": "memory",
    "positive_integer": "parameters",
    "private_memory": "memory",
    "rows_per_block": "memory",
    "shown_progress": "progress",
    "to_dense": "arrays",
    "to_numpy": "arrays",
}
__all__ = ["Registry", "looked_up", *_MODULES]

T = TypeVar("T")


def __getattr__(name: str) -> Any:
    # The tree of errors is one topic: all of it is here.
    module = "errors" if name.endswith(("Error", "Warning")) else _MODULES.get(name)
    if module is None:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{module}"), name)


def looked_up(address: str) -> Any:
    """What ``"module:NAME"`` stands for: rooms above this one are known by name only."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


class Registry(dict[str, T]):
    """Things by name, each with one line; in place of a thing there may be ``"module:NAME"``.

    Names are there at once, for messages and ``--help``; the module behind a name, and whatever it
    imports, only when that name is used.
    """

    if TYPE_CHECKING:

        def __init__(self, places: dict[str, Any]) -> None: ...

    def __getitem__(self, name: str) -> T:
        thing: Any = super().__getitem__(name)
        if isinstance(thing, str):
            thing = self[name] = looked_up(thing)
        return thing
