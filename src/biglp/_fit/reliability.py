"""Whether confidence is what it says: labels that were held out, by how sure the model was of them.

Held-out rows are put in order of their confidence and cut into groups of equal size. In each group
the mean confidence is compared with the share of the labels that was found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._answers.base import HeldOut
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets

LEAST_IN_GROUP, MOST_GROUPS = 10, 10
"""Labels of a group, at least, and groups, at most."""
DIGITS = 4
"""Rounded figures are the same on every machine."""


def reliability(labels: Labels | Targets, held_out: HeldOut | None) -> dict[str, Any]:
    """Compare confidence with what was right.

    Parameters
    ----------
    labels : Labels or Targets
    held_out : HeldOut or None
        What is said of labelled rows without their own labels.

    Returns
    -------
    facts : dict
        For the report: ``reliability``, a list of groups, the least sure first, each with its
        number of ``labels``, their mean ``confidence`` and the share that was found (``right``);
        None where too few labels were held out. Empty where the method holds none out.
    """
    if held_out is None or not isinstance(labels, Labels):
        return {}
    known = np.isfinite(held_out.shares).all(axis=1)
    if known.sum() < LEAST_IN_GROUP:
        return {"reliability": None}
    shares = held_out.shares[known]
    codes = labels.codes[np.searchsorted(labels.rows, held_out.rows[known])]
    confidence = shares.max(axis=1)
    right = shares.argmax(axis=1) == codes
    order = np.lexsort((held_out.rows[known], confidence.round(DIGITS)))
    groups = np.array_split(order, min(len(order) // LEAST_IN_GROUP, MOST_GROUPS))
    found = [
        {
            "labels": len(group),
            "confidence": round(float(confidence[group].mean()), DIGITS),
            "right": round(float(right[group].mean()), DIGITS),
        }
        for group in groups
    ]
    return {"reliability": found}
