"""Rows to low-rank features, and the graph they make: each factor in the file of its name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from biglp._core import Registry

if TYPE_CHECKING:
    from biglp._graph.factor import Factor
    from biglp._graph.own import OwnGraph

FACTORS: Registry[type[Factor] | type[OwnGraph]] = Registry(
    {
        "anchors": "biglp._graph.anchors:AnchorFactor",
        "nystrom": "biglp._graph.nystrom:NystromFactor",
        "glnp": "biglp._graph.glnp.factor:GlnpFactor",
        "glnp-mu": "biglp._graph.glnp.factor:MultiplicativeGlnpFactor",
        "linear": "biglp._graph.linear:LinearFactor",
        "precomputed": "biglp._graph.own:OwnGraph",
    }
)
"""Every factor by its name, and the graph that needs none: one line each."""

_MODULES = {
    "AnswerSweep": "graph",
    "DiskStore": "features",
    "Factor": "factor",
    "Graph": "graph",
    "Lloyd": "landmarks",
    "MemoryStore": "features",
    "Normalisation": "features",
    "SpillingStore": "features",
    "TrainingRows": "graph",
    "choose_landmarks": "landmarks",
    "kmeans_start": "landmarks",
    "landmarks_for": "factor",
    "landmark_spacing": "landmarks",
    "nearest_landmarks": "kernels",
}
"""The door beside it: each name with its module, which is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
