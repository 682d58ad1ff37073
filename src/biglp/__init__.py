"""Semi-supervised classification for 10⁵ to 10⁹ rows: low-rank label propagation."""

from __future__ import annotations

from biglp._version import __version__
from biglp.estimators import LowRankLabelPropagation

__all__ = ["LowRankLabelPropagation", "__version__"]
