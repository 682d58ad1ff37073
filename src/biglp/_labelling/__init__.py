"""The labelling page: a server on this machine, and what it knows of rows, labels and a model."""

from __future__ import annotations

from typing import Any

_FILES = {
    "Address": "server",
    "Answers": "answers",
    "Guard": "server",
    "History": "answers",
    "Known": "answers",
    "LabelsFile": "answers",
    "Page": "app",
    "Session": "session",
    "Wanted": "session",
    "kept_token": "server",
}
__all__ = list(_FILES)


def __getattr__(name: str) -> Any:  # only the page itself needs a server
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
