"""Whether confidence is what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from biglp._report.charts import wilson
from biglp.plot.base import Display, report_of


@dataclass
class ReliabilityDisplay(Display):
    """Held-out labels that were found, by how sure the model was of them, with 90 % intervals.

    Parameters
    ----------
    confidence : ndarray of shape (g,)
        Mean confidence of each group of labels.
    right : ndarray of shape (g,)
        Share of the group that was found.
    counts : ndarray of shape (g,)
        Labels of the group.

    Examples
    --------
    >>> import numpy as np
    >>> from biglp.plot import ReliabilityDisplay
    >>> sure, right = np.array([0.6, 0.9]), np.array([0.5, 0.95])
    >>> display = ReliabilityDisplay(sure, right, np.array([20, 20]))
    >>> display.plot().ax_.get_xlabel()
    'how sure'
    """

    title: ClassVar[str] = "Is it as right as it is sure?"

    confidence: np.ndarray
    right: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> ReliabilityDisplay:
        """Draw what a fitted classifier has found with labels held out.

        Parameters
        ----------
        estimator : LowRankLabelPropagation
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        display : ReliabilityDisplay
        """
        groups = report_of(estimator, "reliability", "reliability")
        columns = (
            np.array([group[key] for group in groups]) for key in ("confidence", "right", "labels")
        )
        return cls(*columns).plot(ax)

    def _draw(self, ax: Any) -> None:
        ends = np.array(
            [wilson(right, count) for right, count in zip(self.right, self.counts, strict=True)]
        )
        ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
        reach = np.abs(ends.T - self.right)
        ax.errorbar(self.confidence, self.right, yerr=reach, fmt="o", color="#0072b2")
        ax.set(xlabel="how sure", ylabel="share that is right", xlim=(0, 1.02), ylim=(0, 1.02))
