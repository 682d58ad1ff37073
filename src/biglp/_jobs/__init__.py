"""Runs from files to files, without their printing: one class for each command that reads rows.

``FitJob(inputs, output, …).run()`` returns what ``summary.json`` holds. Loaded when they are asked
for: ``biglp predict`` needs nothing of ``biglp fit``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PLACES = {
    "CheckJob": "check",
    "FinishedFit": "results",
    "FirstJob": "suggest",
    "FitJob": "fit",
    "PredictJob": "predict",
    "ReportJob": "report",
    "SuggestJob": "suggest",
    "Trials": "inspect",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
