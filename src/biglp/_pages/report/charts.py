"""Numbers of the charts, ready to be drawn: places and sizes in the units of their SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

WIDTH, HEIGHT = 360, 232
LEFT, RIGHT, TOP, BOTTOM = 40, 20, 24, 38
"""Chart and its margins."""
BINS = 20
TAILS = 1.645
"""Standard deviations that hold 90 % of a normal distribution."""


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _frame() -> dict[str, Any]:
    """Size and axes."""
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "x_ticks": [{"at": _x(share), "text": f"{share:.0%}"} for share in ticks],
    }


def histogram(values: np.ndarray, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    """Bars of how many values lie where.

    Parameters
    ----------
    values : ndarray of shape (m,)
    low, high : float
        Ends of the axis.
    """
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    top = max(int(counts.max(initial=0)), 1) / max(len(values), 1)
    shares = counts / max(len(values), 1)
    width = (high - low) or 1.0
    found = _frame()
    if (low, high) != (0.0, 1.0):
        found["x_ticks"] = [
            {"at": _x(share), "text": f"{low + share * width:.3g}"} for share in (0.0, 0.5, 1.0)
        ]
    found["y_ticks"] = [{"at": _y(part), "text": f"{part * top:.0%}"} for part in (0.0, 0.5, 1.0)]
    found["bars"] = [
        {
            "x": _x((edges[place] - low) / width),
            "width": round(
                _x((edges[place + 1] - low) / width) - _x((edges[place] - low) / width) - 1, 1
            ),
            "y": _y(share / top),
            "height": round(HEIGHT - BOTTOM - _y(share / top), 1),
            "title": f"{edges[place]:.3g} to {edges[place + 1]:.3g}: {share:.1%}",
        }
        for place, share in enumerate(shares.tolist())
    ]
    return found


def reliability(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Points of confidence against the share that was right, with 90 % intervals (Wilson's)."""
    found = _frame()
    found["y_ticks"] = [{"at": _y(share), "text": f"{share:.0%}"} for share in (0.0, 0.5, 1.0)]
    found["diagonal"] = {"x1": _x(0), "y1": _y(0), "x2": _x(1), "y2": _y(1)}
    found["points"] = [
        {
            "x": _x(group["confidence"]),
            "y": _y(group["right"]),
            "low": _y(low),
            "high": _y(high),
            "title": f"{group['labels']} labels: {group['confidence']:.0%} sure, "
            f"{group['right']:.0%} right",
        }
        for group in groups
        for low, high in [wilson(group["right"], group["labels"])]
    ]
    return found


def wilson(share: float, count: int) -> tuple[float, float]:
    """90 % interval of a share of so many."""
    square = TAILS * TAILS / count
    middle = (share + square / 2) / (1 + square)
    reach = TAILS * np.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def members(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The members of the committee and their shares of the weight, the heaviest first."""
    every = settings.get("members") or []
    # Members of a regression have a weight and an error for each target.
    weights = [float(np.mean(item["weight"])) for item in every]
    total = sum(weights) or 1.0
    found = [
        {
            "name": item["member"],
            "what": item.get("what", ""),
            "share": weight / total,
            "accuracy": item.get("accuracy"),
            "error": ", ".join(f"{error:.3g}" for error in item.get("error", ())),
        }
        for item, weight in zip(every, weights, strict=True)
    ]
    return sorted(found, key=lambda member: -member["share"])


def interval(estimate: Mapping[str, Any]) -> dict[str, float]:
    """Places, in percent of a line, of an estimate, its interval and the simplest answer."""
    low, high = estimate["interval"]
    return {
        "low": round(100 * low, 1),
        "width": round(100 * (high - low), 1),
        "at": round(100 * estimate["accuracy"], 1),
        "base": round(100 * estimate["base_rate"], 1),
    }
