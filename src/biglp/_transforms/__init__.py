"""Rows to rows: missing values filled, features scaled, projected; learnt once, kept in a chain."""

from __future__ import annotations

from biglp._transforms.base import TRANSFORMS, Chain, Fill, RowTransform
from biglp._transforms.project import Project, leading_directions, principal_directions
from biglp._transforms.scale import SCALINGS, Parts, Scale

__all__ = [
    "SCALINGS",
    "TRANSFORMS",
    "Chain",
    "Fill",
    "Parts",
    "Project",
    "RowTransform",
    "Scale",
    "leading_directions",
    "principal_directions",
]
