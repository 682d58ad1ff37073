"""The parameters that shape the graph, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from biglp._core.effort import DEFAULT_EFFORT


@dataclass(frozen=True)
class GraphSettings:
    """Checked parameters of the graph; the names are those of the estimator.

    Attributes
    ----------
    factor : str
        A registered factor.
    n_landmarks : int or None
        None: the factor chooses.
    landmarks : str or array
    bandwidth : float or None
        None: from the spacing of the landmarks.
    scaling : str
    projected : bool
        Whether wide rows may be projected on their principal directions.
    directions : int or None
        Directions that rows are projected on, 0 for none; None: as many as suits them.
    device : str
    seed : int
    embedder : str or None
        A transform that follows the scaling, in the place of a projection.
    effort : str
        One of :data:`biglp._core.effort.EFFORTS`.
    factor_params : dict
    gpu_memory : int or None
        Bytes of a card's memory that may be taken; None: a share of what is free.
    precision : str
        Digits of products on a card.
    """

    factor: str
    n_landmarks: int | None
    landmarks: Any
    bandwidth: float | None
    scaling: str
    projected: bool
    directions: int | None
    device: str
    seed: int
    embedder: str | None = None
    effort: str = DEFAULT_EFFORT
    factor_params: dict[str, Any] = field(default_factory=dict)
    gpu_memory: int | None = None
    precision: str = "float32"
