"""Commands that take their options in groups.

A group is a dataclass: its fields are options, declared once with type, default and help. A command
names the groups it takes, typer sees their fields one by one, and the command gets each group as
one object::

    @grouped
    def predict(*, reading: Annotated[Reading, only("drop")], machine: Machine) -> None:
        ...

A new field of a group is a new option of every command that takes the whole group.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class _Only:
    names: tuple[str, ...]


def only(*names: str) -> _Only:
    """Mark a parameter that takes some options of a group; the others keep their defaults."""
    return _Only(names)


def grouped(command: Command) -> Command:
    """Let typer see the options of a command's groups as options of the command."""
    signature = inspect.signature(command, eval_str=True)
    shown: list[Parameter] = []
    groups: dict[str, tuple[type, tuple[str, ...]]] = {}
    for parameter in signature.parameters.values():
        group, names = _group_of(parameter.annotation)
        if group is None:
            shown.append(parameter)
            continue
        groups[parameter.name] = group, names
        hints = get_type_hints(group, include_extras=True)
        defaults = {field.name: field.default for field in fields(group)}
        shown += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hints[name])
            for name in names
        ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        made = {
            parameter: group(**{name: given.pop(name) for name in names})
            for parameter, (group, names) in groups.items()
        }
        return command(**given, **made)

    run.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run  # type: ignore[return-value]


def _group_of(annotation: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the group that an annotation names and the options it takes; None for no group."""
    chosen: tuple[str, ...] | None = None
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        chosen = next((mark.names for mark in more if isinstance(mark, _Only)), None)
    if not (isinstance(annotation, type) and is_dataclass(annotation)):
        return None, ()
    return annotation, chosen or tuple(field.name for field in fields(annotation))
