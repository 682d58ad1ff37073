"""The displays: maps, learning curves, members, reliability; matplotlib is loaded for a drawing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from biglp._core.errors import LabelError, MissingExtraError, ParameterError
from biglp._labels.labels import as_column, unlabelled
from biglp._report.charts import class_colours, members, stretched, wilson


def require_matplotlib(what: str) -> None:
    """Explain that a plot needs matplotlib.

    Parameters
    ----------
    what : str
        What is to be drawn, for the message.

    Raises
    ------
    MissingExtraError
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            f"{what}: plots need matplotlib, which is not installed; install it with: "
            'pip install "biglp[plot]"'
        )


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


class FitDisplay(Display):
    """Base of the displays of what a fit has found."""

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> Any:
        """Draw it of a fitted classifier; of the map, one that holds its training rows.

        Parameters
        ----------
        estimator : LowRankLabelPropagation
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        display : Display

        Raises
        ------
        ParameterError
            When the fit has not found it.
        """
        check_is_fitted(estimator)
        return cls._of(estimator).plot(ax)

    @classmethod
    @abstractmethod
    def _of(cls, estimator: Any) -> Any:
        """The display of a fitted estimator, not drawn yet."""


def report_of(estimator: Any, key: str, what: str) -> Any:
    """Part of the report of a fitted estimator; refused where the fit has not found it."""
    report = getattr(estimator, "report_", {})
    if not report.get(key):
        raise ParameterError(
            f"report_[{key!r}] of this {type(estimator).__name__} is {report.get(key)!r}, so that "
            f"there is no {what} to draw: it takes the default committee (factor='auto') of a "
            "classifier, and some labels that can be held out."
        )
    return report[key]


FEWEST = 2
"""Labels of each class that a curve begins with."""
SIZES = 5
"""Numbers of labels of a curve."""


@dataclass
class LearningCurveDisplay(Display):
    """Accuracy over the number of labels: estimated, and found on the labels that were left out.

    Parameters
    ----------
    n_labels : ndarray of shape (p,)
    estimated : ndarray of shape (p,)
        Estimated accuracy on the unlabelled rows; NaN where labels are too few for one.
    low, high : ndarrays of shape (p,)
        Its 90 % interval.
    found : ndarray of shape (p,)
        Share of the labels that were left out that is found; NaN where none were.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from biglp import LowRankLabelPropagation
    >>> from biglp.plot import LearningCurveDisplay
    >>> X, truth = (part[:600] for part in load_digits(return_X_y=True))
    >>> y = truth.copy()
    >>> y[300:] = -1
    >>> model = LowRankLabelPropagation()
    >>> display = LearningCurveDisplay.from_estimator(model, X, y, sizes=[50, 300])
    >>> display.n_labels.tolist()
    [50, 300]
    """

    title: ClassVar[str] = "Accuracy over labels"

    n_labels: np.ndarray
    estimated: np.ndarray
    low: np.ndarray
    high: np.ndarray
    found: np.ndarray

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sizes: Sequence[int] | None = None, ax: Any = None
    ) -> LearningCurveDisplay:
        """Fit copies of a classifier on parts of the labels, each part within the next.

        Labels are taken class by class in turn, in an order that depends on nothing but the number
        of rows.

        Parameters
        ----------
        estimator : LowRankLabelPropagation
            It is not changed, and need not be fitted.
        X : array, CSR matrix, data frame or path
            The rows.
        y : array of shape (n_rows,)
            Labels; -1, None, NaN or "" where unknown.
        sizes : sequence of int, optional
            Numbers of labels; by default five, up to all of them.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        display : LearningCurveDisplay
        """
        y = as_column(y)
        rows = np.flatnonzero(~unlabelled(y))
        if not len(rows):
            raise LabelError(
                f"none of the {len(y):,} rows has a label in y, so that there is no curve; give "
                "labels."
            )
        # One row of each class, then a second of each, and so on.
        rows = np.random.default_rng(0).permutation(rows)
        classes, codes = np.unique(y[rows].astype(str), return_inverse=True)
        turns = np.empty(len(rows), dtype=np.int64)
        for code in range(len(classes)):
            own = np.flatnonzero(codes == code)
            turns[own] = np.arange(len(own))
        order = rows[np.lexsort((codes, turns))]
        n_classes, n_labels = len(classes), len(order)
        if sizes is None:
            first = min(FEWEST * n_classes, n_labels)
            sizes = [round(size) for size in np.geomspace(first, n_labels, SIZES)]
        if not len(sizes) or not all(n_classes <= size <= n_labels for size in sizes):
            raise ParameterError(
                f"sizes={list(sizes)} must be numbers of labels from {n_classes} (one of each "
                f"class) to {n_labels} (all of them)."
            )
        sizes = sorted({int(size) for size in sizes})
        lines = []
        for size in sizes:
            given, others = y.copy(), order[size:]
            nothing = -1 if given.dtype.kind in "iuf" else None
            given = given.astype(object) if nothing is None else given
            given[others] = nothing
            model = clone(estimator).fit(X, given)
            estimate = model.report_.get("estimated_accuracy")
            estimated = (np.nan, np.nan, np.nan)
            if estimate is not None:
                estimated = (estimate["accuracy"], *estimate["interval"])
            right = model.transduction_[others].astype(object) == y[others].astype(object)
            lines.append((*estimated, float(right.mean()) if len(others) else np.nan))
        return cls(np.array(sizes), *np.array(lines).T).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax.fill_between(self.n_labels, self.low, self.high, alpha=0.2, color="#0072b2", linewidth=0)
        ax.plot(self.n_labels, self.estimated, "o-", color="#0072b2", label="estimated, 90 %")
        if np.isfinite(self.found).any():
            words = "found of the labels left out"
            ax.plot(self.n_labels, self.found, "s--", color="#d55e00", label=words)
        ax.set(xlabel="labels", ylabel="accuracy", ylim=(0, 1.02))
        ax.legend(loc="lower right", frameon=False)


MOST_NAMES = 20
"""Classes whose names are written on the map, the largest."""


@dataclass
class MapDisplay(FitDisplay):
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
    def _of(cls, estimator: Any) -> MapDisplay:
        content = estimator._content(look=True)
        sample = content.evidence
        if sample is None or not len(sample.places):
            raise ParameterError(
                "this estimator has no rows to draw a map of: it was loaded or unpickled, predicts "
                "numbers, or was fitted on a graph of its own; fit a LowRankLabelPropagation on "
                "rows."
            )
        return cls(
            places=sample.places,
            labels=sample.codes,
            labelled_places=sample.labelled_places,
            labelled=sample.labelled_codes,
            classes=content.classes,
        )

    def _draw(self, ax: Any) -> None:
        sizes = np.bincount(self.labels, minlength=len(self.classes))
        colours = np.array(class_colours(sizes))
        places, marks = stretched(self.places, self.labelled_places)
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


@dataclass
class MembersDisplay(FitDisplay):
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
    def _of(cls, estimator: Any) -> MembersDisplay:
        report_of(estimator, "members", "committee")
        lines = members(estimator.report_)
        shares = np.array([line["share"] for line in lines])
        accuracy = [line["accuracy"] for line in lines]
        return cls([line["name"] for line in lines], shares, accuracy)

    def _draw(self, ax: Any) -> None:
        places = np.arange(len(self.names))[::-1]
        ax.barh(places, self.shares, color="#0072b2")
        for place, share, accuracy in zip(places, self.shares, self.accuracy, strict=True):
            found = "" if accuracy is None else f", {accuracy:.0%} found"
            ax.annotate(
                f"{share:.0%}{found}",
                (share, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
            )
        ax.set_yticks(places, labels=list(self.names))
        ax.set(xlabel="share of the weight", xlim=(0, 1.3 * max(self.shares.max(), 0.01)))


@dataclass
class ReliabilityDisplay(FitDisplay):
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
    def _of(cls, estimator: Any) -> ReliabilityDisplay:
        groups = report_of(estimator, "reliability", "reliability")
        columns = (
            np.array([group[key] for group in groups]) for key in ("confidence", "right", "labels")
        )
        return cls(*columns)

    def _draw(self, ax: Any) -> None:
        ends = np.array(
            [wilson(right, count) for right, count in zip(self.right, self.counts, strict=True)]
        )
        ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
        reach = np.abs(ends.T - self.right)
        ax.errorbar(self.confidence, self.right, yerr=reach, fmt="o", color="#0072b2")
        ax.set(xlabel="how sure", ylabel="share that is right", xlim=(0, 1.02), ylim=(0, 1.02))
