"""Damaged files: whatever a format's library makes of one, the message says which file it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from biglp._core.errors import BadRowsError, BigLPError

_MEANT = (BigLPError, OSError, MemoryError, ImportError, AssertionError, NameError)
"""Errors that say more as they are: ours, the system's, and mistakes in the program."""


@contextmanager
def explained_reading(name: Any) -> Iterator[None]:
    """Turn what libraries raise on a damaged file, in any of their layers, into one error."""
    try:
        yield
    except _MEANT:
        raise
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise BadRowsError(
            f"{name} cannot be read ({type(error).__name__}: {lines[0][:300]}). It is damaged, was "
            "cut short, or is no file of the kind that its ending says; write or copy it again."
        ) from error
