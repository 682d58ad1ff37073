"""How the values of options are read: from text to numbers, names and shares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from biglp._core.places import as_place


def auto_or(kind: type) -> Callable[[str], Any]:
    """Return a reader of numbers that also takes "auto"."""
    what = "a whole number" if kind is int else "a number"

    def read(text: str) -> Any:
        if text == "auto":
            return text
        try:
            return kind(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither 'auto' nor {what}.") from None

    return read


def alternatives(metavar: str) -> list[str]:
    """Words that an option takes, of those that its metavar names; N and FILE stand for others."""
    words = metavar.split("|")
    return [word for word in words if word.islower()] if len(words) > 1 else []


def option(*flags: str, **about: Any) -> Any:
    """Declare an option; a shell completes the words of its metavar, such as "auto|mean|N"."""
    words = alternatives(about.get("metavar", ""))
    return typer.Option(*flags, autocompletion=(lambda: words) if words else None, **about)


def balance(text: str) -> Any:
    """Read a class balance: a word, or the classes' shares."""
    if "," not in text:
        return text
    try:
        return [float(share) for share in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not auto, mass, share, centre or none, and not shares such as 0.9,0.1."
        ) from None


def names(text: str) -> tuple[str, ...]:
    """Split a list of column names; a name with a comma may stand in quotes."""
    import csv

    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True)))


def named_values(text: str) -> dict[str, Any]:
    """Read ``name=value,name=value``, where values may be numbers, true or false, or words."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals and value):
            raise typer.BadParameter(f"{part!r} is not NAME=VALUE, such as max_iter=2000.")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def whole_or_text(text: str) -> int | str:
    """Read a whole number where the text is one."""
    try:
        return int(text)
    except ValueError:
        return text


def local_path(text: str) -> Path:
    """Read the name of a local file or folder."""
    place = as_place(text)
    if not isinstance(place, Path):
        raise typer.BadParameter(
            f"{text} is in a store; this command writes to local folders only."
        )
    return place


def delimiter(text: str) -> str:
    """Read a delimiter; a tab may be written as a word or as in Python."""
    return "\t" if text in ("tab", "\\t") else text
