"""The estimators' side of the report: a page, and its short form in a notebook."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from biglp._core.progress import versions
from biglp._files.local import atomic_write
from biglp._files.uri import as_place
from biglp._fit.evidence import EvidenceMaker
from biglp._fit.novelty import unlike_warning
from biglp._fit.pipeline import region_warnings
from biglp._fit.report import Report
from biglp._fit.update import known_doubts
from biglp._report.page import Content, Step, report_html, short_html
from biglp._rows.source import explained

CLASSES = (
    Step(
        "Label the rows that would help most.",
        "rows = model.suggest(20)\nmodel.update_labels(rows, labels)",
    ),
    Step("See which given labels are probably wrong.", "model.doubtful_labels()"),
)
EVERY = (
    Step("Keep the model, and label new rows.", 'model.save("model.biglp")\nmodel.predict(X)'),
)
NO_ROWS = (
    "There is no map, and there are no rows to look at: the model was loaded or unpickled, and "
    "holds no training rows."
)


class ReportMixin:
    """``report_html`` and what notebooks show, for an estimator with ``report_``."""

    if TYPE_CHECKING:
        report_: Report

    def report_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a report for people, one HTML page that needs no network and no script.

        It says in words what was done and chosen, and shows labels given and found, how sure the
        model is, a map, and rows of each class to look at; docs/report.md says how far each part
        can be trusted. A sample of the training rows is read, no sweep.

        Parameters
        ----------
        path : path or URI, optional
            File to write it to.

        Returns
        -------
        html : str

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = truth.copy()
        >>> y[50:] = -1
        >>> html = LowRankLabelPropagation().fit(X, y).report_html()
        >>> "of the unlabelled rows are right" in html
        True
        """
        check_is_fitted(self)
        html = report_html(self._content(look=True))
        if path is not None:
            with atomic_write(as_place(path)) as file:
                file.write(html.encode())
        return html

    def _content(self, *, look: bool = False) -> Content:
        """What the report says; with ``look`` also what its rows show."""
        return _of_classes(self, look) if hasattr(self, "classes_") else _of_values(self)

    def _html_with_report(self, html: str) -> str:
        """Add the short form to scikit-learn's own picture of a fitted estimator."""
        return html + short_html(self._content()) if hasattr(self, "report_") else html

    def _repr_html_inner(self) -> str:
        return self._html_with_report(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._html_with_report(bundle["text/html"])
        return dict(bundle)


def _of_classes(estimator: Any, look: bool) -> Content:
    report, problem = estimator.report_, estimator.__dict__.get("_problem")
    names = tuple(map(str, estimator.classes_.tolist()))
    warned = [str(warning) for warning in region_warnings(report)]
    if report.get("unlike_labels"):
        warned.append(str(unlike_warning(report["unlike_labels"])))
    facts: dict[str, Any] = {"settings": report, "versions": versions(), "warnings": warned}
    if problem is not None:
        facts["given"] = dict(zip(names, problem.labels.rows_each.tolist(), strict=True))
        facts["features"] = problem.graph.source.inner.n_features
    # Not by asking for them: that would label all rows after an update of the labels.
    if "transduction_" in estimator.__dict__:
        labels = estimator.transduction_
        if labels.dtype == object:  # texts beside numbers have no order
            counts = Counter(labels.tolist())
        else:
            classes, n_rows = np.unique(labels, return_counts=True)
            counts = Counter(dict(zip(classes.tolist(), n_rows.tolist(), strict=True)))
        facts["found"] = dict.fromkeys(names, 0) | {str(n): count for n, count in counts.items()}
    more: dict[str, Any] = {}
    if problem is None:
        more["missing"] = (NO_ROWS,)
    elif look and not problem.graph.pairwise:
        source = problem.graph.source.inner
        with estimator._working() as engine, explained(source):
            problem = estimator._problem_on(engine)
            doubts = known_doubts(problem.labels, estimator._held_out)
            seed, answer = problem.settings.seed, estimator._model.answer
            maker = EvidenceMaker(problem.graph, answer, problem.labels, doubts, seed)
            more["evidence"] = maker.evidence()
        more["feature_names"] = source.feature_names
    return Content(
        title=f"{report.get('rows', 0):,} rows labelled from "
        f"{report.get('labelled_rows', 0):,} labels",
        facts=facts,
        classes=names,
        going_on=(*CLASSES, *EVERY),
        **more,
    )


def _of_values(estimator: Any) -> Content:
    report, values = estimator.report_, estimator.__dict__.get("transduction_")
    return Content(
        title=f"{report.get('rows', 0):,} rows given values from "
        f"{report.get('labelled_rows', 0):,} labels",
        facts={"settings": report, "versions": versions()},
        values=None if values is None else values.reshape(len(values), -1)[:, 0],
        going_on=EVERY,
        missing=() if values is not None else (NO_ROWS,),
    )
