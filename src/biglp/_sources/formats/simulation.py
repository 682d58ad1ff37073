"""What to make up, written as text: ``sim:ROWSxFEATURES,setting=value,…``."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError

PREFIX = "sim:"
_SCALES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_USAGE = (
    "write sim:ROWSxFEATURES, for example sim:1000000x100 or "
    "sim:100Mx100,classes=2,clusters=3,separation=6,noise=1,labels=100,seed=0"
)


@dataclass(frozen=True)
class Simulation:
    """What to make up.

    Attributes
    ----------
    n_rows, n_features : int
    classes : int
        Number of classes, equally likely.
    clusters : int
        Clusters of each class.
    separation : float
        Typical distance between the centres of two clusters.
    noise : float
        Standard deviation of each feature around its cluster's centre.
    labels : int
        Labelled rows of each class.
    seed : int
    """

    n_rows: int
    n_features: int
    classes: int = 2
    clusters: int = 3
    separation: float = 6.0
    noise: float = 1.0
    labels: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be made."""
        least = {"n_rows": 1, "n_features": 1, "classes": 1, "clusters": 1, "labels": 0, "seed": 0}
        given = vars(self)
        for name, value in least.items():
            if given[name] < value:
                raise ParameterError(
                    f"simulation: {name}={given[name]} must be at least {value}; {_USAGE}."
                )
        for name in ("separation", "noise"):
            if not 0 <= given[name] < np.inf:
                raise ParameterError(
                    f"simulation: {name}={given[name]} must be 0 or more; {_USAGE}."
                )

    @classmethod
    def parse(cls, spec: str) -> Simulation:
        """Read a description such as ``sim:100Mx100,classes=2,seed=7``."""
        shape, *settings = spec.removeprefix(PREFIX).split(",")
        sizes = shape.lower().split("x")
        if len(sizes) != 2:
            raise ParameterError(f"{spec!r} is no simulation; {_USAGE}.")
        given: dict[str, Any] = {
            "n_rows": _count(sizes[0], spec),
            "n_features": _count(sizes[1], spec),
        }
        kinds = {field.name: field.type for field in fields(cls)}
        for setting in settings:
            name, mark, value = setting.strip().partition("=")
            if not mark or name not in kinds or name in given:
                known = ", ".join(sorted(set(kinds) - {"n_rows", "n_features"}))
                raise ParameterError(
                    f"{spec!r}: {setting.strip()!r} is not known or given twice; the settings are "
                    f"{known}; {_USAGE}."
                )
            given[name] = _number(value, spec) if kinds[name] == "float" else _count(value, spec)
        return cls(**given)


def _count(text: str, spec: str) -> int:
    match = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:e[0-9]+)?)([KMGB]?)", text.strip(), re.I)
    value = float(match[1].replace("_", "")) * _SCALES[match[2].upper()] if match else 0.5
    if value != int(value):
        raise ParameterError(f"{spec!r}: {text!r} is not a whole number; {_USAGE}.")
    return int(value)


def _number(text: str, spec: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"{spec!r}: {text!r} is not a number; {_USAGE}.") from error
