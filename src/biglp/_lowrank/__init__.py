"""Rows to low-rank features, and the graph they make: each factor in the file of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biglp._core.registry import Registry

if TYPE_CHECKING:
    from biglp._lowrank.base import Factor
    from biglp._lowrank.precomputed import OwnGraph

FACTORS: Registry[type[Factor] | type[OwnGraph]] = Registry(
    {
        "anchors": "biglp._lowrank.anchors:AnchorFactor",
        "nystrom": "biglp._lowrank.nystrom:NystromFactor",
        "glnp": "biglp._lowrank.glnp.factor:GlnpFactor",
        "glnp-mu": "biglp._lowrank.glnp.factor:MultiplicativeGlnpFactor",
        "linear": "biglp._lowrank.linear:LinearFactor",
        "precomputed": "biglp._lowrank.precomputed:OwnGraph",
    }
)
"""Every factor by its name, and the graph that needs none: one line each."""
