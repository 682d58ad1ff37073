"""What low-rank propagation is compared with: exact propagation, and nearest neighbours.

:class:`DensePropagation` is label propagation on the whole n × n graph: the method that
:class:`biglp.LowRankLabelPropagation` approximates, for as many rows as fit in memory.
:class:`NearestNeighbours` looks at the labelled rows only.
"""

from __future__ import annotations

from biglp.baselines.neighbours import NearestNeighbours, neighbour_distance
from biglp.baselines.propagation import DensePropagation

__all__ = ["DensePropagation", "NearestNeighbours", "neighbour_distance"]
