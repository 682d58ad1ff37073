"""Runs from files to files, without their printing: one class for each command that reads rows.

``FitJob(inputs, output, …).run()`` returns what ``summary.json`` holds. Loaded when they are asked
for: ``biglp predict`` needs nothing of ``biglp fit``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biglp._jobs.check import CheckJob as CheckJob
    from biglp._jobs.fit import FitJob as FitJob
    from biglp._jobs.identity import FinishedFit as FinishedFit
    from biglp._jobs.inspect import Trials as Trials
    from biglp._jobs.predict import PredictJob as PredictJob
    from biglp._jobs.report import ReportJob as ReportJob
    from biglp._jobs.suggest import FirstJob as FirstJob
    from biglp._jobs.suggest import SuggestJob as SuggestJob

_PLACES = {
    "CheckJob": "check",
    "FinishedFit": "identity",
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
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
