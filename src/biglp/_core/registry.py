"""Tables of things by name, each loaded when it is first asked for.

A factor, a format, an engine, a member of the committee or a kind of answer is registered with one
line: its name and where it is. Names are there at once, for messages and ``--help``; the module
behind a name, and whatever it imports, only when that name is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass
class Registry(Generic[T]):
    """Things by name.

    Parameters
    ----------
    places : dict of str to str
        For each name ``"module:object"``.
    """

    places: dict[str, Any]  # a place is replaced by the thing itself when that is loaded

    def __getitem__(self, name: str) -> T:
        thing = self.places[name]
        if isinstance(thing, str):
            module, _, attribute = thing.partition(":")
            thing = self.places[name] = getattr(import_module(module), attribute)
        return thing

    def __setitem__(self, name: str, thing: T | str) -> None:
        """Register a thing, or the place where it is."""
        self.places[name] = thing

    def __delitem__(self, name: str) -> None:
        del self.places[name]

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        """Names, in the order in which they were registered."""
        return iter(self.places)
