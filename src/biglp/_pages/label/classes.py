"""Classes on the page: names that files of labels can hold, and keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from biglp._core.errors import LabelError
from biglp._labels.codes import whole_number
from biglp._rows.written_numbers import MISSING_TEXTS

MOST_LETTERS = 200
DIGITS = "123456789"
"""Keys of classes; letters are names that are typed."""


def free_key(name: str, taken: Iterable[str | None]) -> str | None:
    """The digit of a new class: its own name where that is free, else the first that is."""
    free = [key for key in DIGITS if key not in set(taken)]
    if name in free or name == "0":
        return name
    return next(iter(free), None)


def class_name(name: Any) -> str:
    """Check the name of a class, which must come back from a file of labels as it is.

    Raises
    ------
    LabelError
    """
    if not isinstance(name, str):
        raise LabelError("the name of a class must be text.")
    name = name.strip()
    if not name or name in MISSING_TEXTS or whole_number(name) == -1:
        raise LabelError(
            f"a class cannot be called {name!r}: in files that means a row without a label. "
            "Give it another name."
        )
    if len(name) > MOST_LETTERS or not name.isprintable():
        raise LabelError(
            f"the name of a class is one line of at most {MOST_LETTERS} letters; "
            f"this one has {len(name)}, or characters that cannot be seen."
        )
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise LabelError("the name of a class must be text in Unicode.") from error
    return name
