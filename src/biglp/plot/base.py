"""What the displays have in common; matplotlib is loaded when something is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from biglp._core.errors import ParameterError
from biglp.plot.needs import require_matplotlib


class Display(ABC):
    """Base of the displays: data that can be drawn, again and on any axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on, after :meth:`plot`.
    figure_ : matplotlib.figure.Figure
    """

    title: ClassVar[str]

    def plot(self, ax: Any = None) -> Any:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.

        Returns
        -------
        display : Display
            This one, with ``ax_`` and ``figure_``.

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        """
        require_matplotlib(type(self).__name__)
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(layout="constrained")
        self._draw(ax)
        ax.set_title(self.title, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw the data."""


def report_of(estimator: Any, key: str, what: str) -> Any:
    """Part of the report of a fitted estimator.

    Raises
    ------
    ParameterError
        When the fit has not found it.
    """
    check_is_fitted(estimator)
    report = getattr(estimator, "report_", {})
    if not report.get(key):
        raise ParameterError(
            f"report_[{key!r}] of this {type(estimator).__name__} is {report.get(key)!r}, so that "
            f"there is no {what} to draw: it takes the default committee (factor='auto') of a "
            "classifier, and some labels that can be held out."
        )
    return report[key]
