"""The report of a fit: one HTML file that needs no network and no script."""

from __future__ import annotations

from typing import Any

_FILES = {
    "Content": "page",
    "Pictures": "charts",
    "Step": "page",
    "png": "charts",
    "report_html": "page",
    "short_html": "page",
    "side_of": "charts",
}
__all__ = list(_FILES)


def __getattr__(name: str) -> Any:  # a fit without a report loads nothing of it
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
