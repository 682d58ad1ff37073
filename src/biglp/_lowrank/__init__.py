"""Rows to low-rank features: each method in the file of its name."""

from __future__ import annotations

from biglp._lowrank.anchors import AnchorFactor
from biglp._lowrank.base import Factor
from biglp._lowrank.glnp.factor import GlnpFactor
from biglp._lowrank.linear import LinearFactor
from biglp._lowrank.nystrom import NystromFactor

FACTORS: dict[str, type[Factor]] = {
    factor.kind: factor for factor in (AnchorFactor, GlnpFactor, LinearFactor, NystromFactor)
}
"""Every factor by its name, to rebuild a saved one."""
