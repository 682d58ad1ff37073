"""The labelling page: a server on this machine, and what it knows of rows, labels and a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biglp._labelling.answers import Answers, History, Known, LabelsFile
    from biglp._labelling.app import Page
    from biglp._labelling.server import Guard
    from biglp._labelling.session import Session, Wanted

_FILES = {
    "Answers": "answers",
    "Guard": "server",
    "History": "answers",
    "Known": "answers",
    "LabelsFile": "answers",
    "Page": "app",
    "Session": "session",
    "Wanted": "session",
}
__all__ = [
    "Answers",
    "Guard",
    "History",
    "Known",
    "LabelsFile",
    "Page",
    "Session",
    "Wanted",
]


def __getattr__(name: str) -> Any:  # only the page itself needs a server
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
