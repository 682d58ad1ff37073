"""The estimator's side of doubtful labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from biglp._core.errors import ParameterError
from biglp._core.parameters import checked
from biglp._fit.check_labels import check_labels
from biglp._labels.doubts import DoubtfulLabels
from biglp._labels.labels import Labels
from biglp._learn.base import HeldOut, Problem
from biglp._rows.source import explained


class LabelCheckMixin:
    """``doubtful_labels`` for an estimator with ``_problem`` and ``_held_out``."""

    if TYPE_CHECKING:
        _problem: Problem[Labels]
        _held_out: HeldOut | None
        _working: Any
        _problem_on: Any

    def doubtful_labels(self, least: float | None = None) -> DoubtfulLabels:
        """Return the labels that are probably wrong, the most doubtful first.

        A label is doubtful when the other labels and the rows say that another is likelier. Up to
        5,000 labels (1,000 where landmarks are thousands) have been looked at by the fit; the
        others are withheld in folds here, without another sweep over the rows. ``transduction_``
        keeps a label that is in doubt, unless the evidence against it is strong: correct it with
        :meth:`update_labels`, or take it away.

        Parameters
        ----------
        least : float, optional
            List the labels that are wrong with at least this probability: 0.5 for those that are
            probably wrong, 0 for all. By default all for which another label is likelier.

        Returns
        -------
        found : DoubtfulLabels
            ``rows``, ``labels`` as given, ``suggested_labels``, their probabilities, and the
            probability that each is ``wrong``; ``pandas.DataFrame(found.to_dict())`` is a table.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = truth.copy()
        >>> y[200:] = -1
        >>> y[17] = 3  # it is a 7
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> found = model.doubtful_labels()
        >>> int(found.rows[0]), int(found.labels[0]), int(found.suggested_labels[0])
        (17, 3, 7)
        >>> model = model.update_labels(found.rows[:1], found.suggested_labels[:1])
        """
        check_is_fitted(self)
        if least is not None:
            least = checked("least", least)
        if "_problem" not in self.__dict__:
            raise ParameterError(
                "this estimator holds neither its training rows nor their labels, because it was "
                "loaded or unpickled; fit it again and ask then, or run biglp check on the rows "
                "and labels."
            )
        with self._working() as engine, explained(self._problem.graph.source.inner):
            doubts = check_labels(self._problem_on(engine), self._held_out)
        return doubts.listed(self._problem.labels, least)
