"""From the sums over all rows to an answer for each row.

A *method* learns an *answer*: the method sees the graph, its sums and the labels once; the answer
is a few arrays that turn a block of features (and rows) into class probabilities or values.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from biglp._core import Registry

if TYPE_CHECKING:
    from biglp._learn.base import Method, Predictor

METHODS: Registry[type[Method]] = Registry(
    {
        "committee": "biglp._learn.committee.method:CommitteeMethod",
        "spreading": "biglp._learn.spreading:SpreadingMethod",
        "poisson": "biglp._learn.poisson:PoissonMethod",
        "regression": "biglp._learn.regression:RegressionMethod",
    }
)
"""Every method by its name: one line each."""

FILTERS = ["spreading", "poisson"]
"""Methods that the parameter ``filter`` names: the committee is its default, regression has
targets."""

ANSWERS: Registry[type[Predictor]] = Registry(
    {
        "committee": "biglp._learn.committee.answer:CommitteePredictor",
        "spreading": "biglp._learn.spreading:SpreadingPredictor",
        "regression": "biglp._learn.regression:RegressionPredictor",
    }
)
"""Every kind of answer by its name in model files and checkpoints."""

_MODULES = {
    "CommitteePredictor": "committee.answer",
    "HeldOutLabels": "accuracy",
    "LearnResult": "base",
    "MEMBERS": "committee",
    "Member": "committee.member",
    "MemberFit": "committee.member",
    "MemberModel": "committee.member",
    "Method": "base",
    "Predictor": "base",
    "SpreadingPredictor": "spreading",
    "TrainingSet": "committee.member",
    "estimate_accuracy": "accuracy",
    "everywhere": "committee.starting_weights",
    "find_weights": "committee.find_weights",
    "unseen_share": "accuracy",
}
"""The door beside it: each name with its module, which is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
