"""Who decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from biglp.plot.base import Display, report_of


@dataclass
class MembersDisplay(Display):
    """The members of the committee and their shares of the weight.

    Parameters
    ----------
    names : sequence of str
    shares : ndarray of shape (q,)
        Shares of the weight, the largest first.
    accuracy : sequence of float or None
        Share of held-out labels that each finds; None where too few could be held out.

    Examples
    --------
    >>> import numpy as np
    >>> from biglp.plot import MembersDisplay
    >>> display = MembersDisplay(["graph", "trees"], np.array([0.7, 0.3]), [0.9, 0.8])
    >>> display.plot().ax_.get_xlabel()
    'share of the weight'
    """

    title: ClassVar[str] = "Members and their weights"

    names: Sequence[str]
    shares: np.ndarray
    accuracy: Sequence[float | None]

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> MembersDisplay:
        """Draw the committee of a fitted classifier.

        Parameters
        ----------
        estimator : LowRankLabelPropagation
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        display : MembersDisplay
        """
        from biglp._report.charts import members

        report_of(estimator, "members", "committee")
        found = members(estimator.report_)
        shares = np.array([member["share"] for member in found])
        accuracy = [member["accuracy"] for member in found]
        return cls([member["name"] for member in found], shares, accuracy).plot(ax)

    def _draw(self, ax: Any) -> None:
        places = np.arange(len(self.names))[::-1]
        ax.barh(places, self.shares, color="#0072b2")
        for place, share, found in zip(places, self.shares, self.accuracy, strict=True):
            told = "" if found is None else f", {found:.0%} found"
            ax.annotate(
                f"{share:.0%}{told}",
                (share, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
            )
        ax.set_yticks(places, labels=list(self.names))
        ax.set(xlabel="share of the weight", xlim=(0, 1.3 * max(self.shares.max(), 0.01)))
