"""Semi-supervised classification for 10⁵ to 10⁹ rows: low-rank label propagation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from biglp._version import __version__

if TYPE_CHECKING:
    from biglp.estimators import LowRankLabelPropagation

__all__ = ["LowRankLabelPropagation", "__version__"]


def __getattr__(name: str) -> Any:
    """Load the estimator, and with it scikit-learn, when it is asked for.

    The command line does without both, and starts in a quarter of the time.
    """
    if name != "LowRankLabelPropagation":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from biglp.estimators import LowRankLabelPropagation

    globals()[name] = LowRankLabelPropagation
    return LowRankLabelPropagation


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
