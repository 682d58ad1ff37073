"""Tables of things by name, each loaded when it is first asked for.

A factor, a format, an engine, a member of the committee or a kind of answer is registered with one
line: its name and where it is. Names are there at once, for messages and ``--help``; the module
behind a name, and whatever it imports, only when that name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class Registry(dict[str, T]):
    """Things by name; in place of a thing there may be ``"module:object"``, where it is."""

    def __init__(self, places: dict[str, Any]) -> None:
        super().__init__(places)

    def __getitem__(self, name: str) -> T:
        thing: Any = super().__getitem__(name)
        if isinstance(thing, str):
            thing = self[name] = looked_up(thing)
        return thing


def looked_up(address: str) -> Any:
    """What ``"module:NAME"`` stands for: rooms above this one are known by name only."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)
