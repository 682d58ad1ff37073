"""A map of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from biglp._core.errors import ParameterError
from biglp._report.charts import class_colours, stretching
from biglp.plot.base import Display

MOST_NAMES = 20
"""Classes whose names are written on the map, the largest."""


@dataclass
class MapDisplay(Display):
    """Places of a sample of the rows in two leading directions of the graph.

    Rows that labels spread between are close together; where rows are crowded the map is stretched.
    Two directions cannot show all classes
    apart: what overlaps may be far apart in others.

    Parameters
    ----------
    places : ndarray of shape (m, 2)
        Of unlabelled rows, drawn at random.
    labels : ndarray of shape (m,)
        Class codes of these rows.
    labelled_places : ndarray of shape (l, 2)
        Of labelled rows, or a part of many.
    labelled : ndarray of shape (l,)
        Their class codes.
    classes : sequence of str
        Names of the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from biglp import LowRankLabelPropagation
    >>> from biglp.plot import MapDisplay
    >>> X, truth = (part[:600] for part in load_digits(return_X_y=True))
    >>> y = truth.copy()
    >>> y[100:] = -1
    >>> model = LowRankLabelPropagation().fit(X, y)
    >>> display = MapDisplay.from_estimator(model)
    >>> display.ax_.get_title(loc="left")
    'Map of the rows'

    ``display.figure_.savefig("map.png")`` writes it to a file.
    """

    title: ClassVar[str] = "Map of the rows"

    places: np.ndarray
    labels: np.ndarray
    labelled_places: np.ndarray
    labelled: np.ndarray
    classes: Sequence[str]

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> MapDisplay:
        """Draw the map of a fitted classifier that holds its training rows.

        Parameters
        ----------
        estimator : LowRankLabelPropagation
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        display : MapDisplay
        """
        check_is_fitted(estimator)
        content = estimator._content(look=True)
        found = content.evidence
        if found is None or not len(found.places):
            raise ParameterError(
                "this estimator has no rows to draw a map of: it was loaded or unpickled, predicts "
                "numbers, or was fitted on a graph of its own; fit a LowRankLabelPropagation on "
                "rows."
            )
        shown = cls(
            places=found.places,
            labels=found.codes,
            labelled_places=found.labelled_places,
            labelled=found.labelled_codes,
            classes=content.classes,
        )
        return shown.plot(ax)

    def _draw(self, ax: Any) -> None:
        sizes = np.bincount(self.labels, minlength=len(self.classes))
        colours = np.array(class_colours(sizes))
        stretch = stretching(np.concatenate([self.places, self.labelled_places]))
        places, marks = stretch(self.places), stretch(self.labelled_places)
        order = np.random.default_rng(0).permutation(len(self.places))
        small = 500 / np.sqrt(max(len(order), 1))
        ax.scatter(*places[order].T, s=small, c=colours[self.labels[order]], linewidths=0)
        ax.scatter(
            *marks.T,
            s=16,
            c=colours[self.labelled],
            edgecolors="black",
            linewidths=0.8,
            label="labelled",
        )
        for code in np.argsort(-sizes, kind="stable")[:MOST_NAMES]:
            if sizes[code]:
                x, y = np.median(places[self.labels == code], axis=0)
                box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1}
                # A dollar sign in a name would begin a formula.
                name = self.classes[code].replace("$", r"\$")
                ax.text(x, y, name, ha="center", va="center", weight="bold", bbox=box)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.legend(loc="best", frameon=False)
