"""Classes of a model as JSON values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.errors import ModelFileError


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
    if stored["dtype"] != "O":
        return np.array(stored["values"], dtype=stored["dtype"])
    classes = np.empty(len(stored["values"]), dtype=object)
    classes[:] = stored["values"]
    return classes
