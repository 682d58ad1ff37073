"""Rows to low-rank features, and the graph they make: each factor in the file of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biglp._core.registry import Registry

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
