"""The report of a fit: one HTML file that needs no network and no script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biglp._report.charts import png
    from biglp._report.page import report_html, short_html
    from biglp._report.rows import Content, Pictures, Step, side_of

_FILES = {
    "Content": "rows",
    "Pictures": "rows",
    "Step": "rows",
    "png": "charts",
    "report_html": "page",
    "short_html": "page",
    "side_of": "rows",
}
__all__ = ["Content", "Pictures", "Step", "png", "report_html", "short_html", "side_of"]


def __getattr__(name: str) -> Any:  # a fit without a report loads nothing of it
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
