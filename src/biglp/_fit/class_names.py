"""Classes of a model as JSON values, and back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from biglp._core.errors import ModelFileError

NUMPY_TYPE = re.compile(r"[<>|=]?[biufU]\d{1,6}")
"""Types of classes that are saved: truth values, whole numbers, numbers and text."""


def classes_to_json(classes: np.ndarray) -> dict[str, Any]:
    """Values and type of classes."""
    if classes.dtype.kind in "biufU":
        return {"dtype": classes.dtype.str, "values": classes.tolist()}
    values = classes.tolist()
    if all(isinstance(value, (str, int, float, bool)) for value in values):
        return {"dtype": "O", "values": values}
    raise ModelFileError(
        "only classes that are numbers or text can be saved; these are "
        f"{sorted({type(value).__name__ for value in values})}. Fit on numbers or text, or pickle."
    )


def classes_from_json(stored: dict[str, Any]) -> np.ndarray:
    """Classes from what :func:`classes_to_json` gave."""
    kind = stored["dtype"]
    if kind == "O":
        classes = np.empty(len(stored["values"]), dtype=object)
        classes[:] = stored["values"]
        return classes
    if not isinstance(kind, str) or not NUMPY_TYPE.fullmatch(kind):
        raise ValueError(f"classes of the type {kind!r}, which no model has")
    return np.array(stored["values"], dtype=kind)
