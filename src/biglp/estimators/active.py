"""Active learning: which rows to label next, taking their labels in, and which labels to doubt."""

from __future__ import annotations

import warnings
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from biglp._core.arrays import to_numpy
from biglp._core.errors import ParameterError
from biglp._core.parameters import checked, chosen, positive_integer
from biglp._core.progress import versions
from biglp._core.settings import Settings
from biglp._engines import Engine
from biglp._fit.choose_rows import Pool, suggest_rows
from biglp._fit.evidence import EvidenceMaker
from biglp._fit.novelty import unlike_labels, unlike_warning
from biglp._fit.pipeline import Pipeline, region_warnings, unreached_warning
from biglp._fit.report import Report
from biglp._fit.update import check_labels, known_doubts, learn, relabelled
from biglp._graph.graph import Graph
from biglp._labels.doubts import DoubtfulLabels
from biglp._labels.labels import Labels
from biglp._learn.accuracy import reliability
from biglp._learn.base import HeldOut, Problem
from biglp._output import ArraySink
from biglp._report.page import Content, Step
from biglp._rows import as_source
from biglp._rows.source import explained
from biglp.estimators.base import EVERY, NO_ROWS, READING, Estimator, label_files

HELD = ("_problem", "_held_out")
"""What is held of the training rows; it is not written to a file."""
ANSWERS = ("transduction_", "label_distributions_")
HOLDS_NONE = "this estimator does not hold its training rows, because it was loaded or unpickled; "
CLASSES = (
    Step(
        "Label the rows that would help most.",
        "rows = model.suggest(20)\nmodel.update_labels(rows, labels)",
    ),
    Step("See which given labels are probably wrong.", "model.doubtful_labels()"),
)


class ActiveLearner(Estimator):
    """``suggest``, ``update_labels`` and ``doubtful_labels`` of a classifier."""

    _problem: Problem[Labels]
    _held_out: HeldOut | None
    classes_: np.ndarray
    _fit: Any

    def suggest(self, n: int = 10, X: Any = None) -> np.ndarray:
        """Return the rows whose labels would help most, the most helpful first.

        They are rows that the model is in doubt about, in places that many other doubtful rows are
        close to and no labelled row is, and not close to each other. One sweep over the rows.

        Parameters
        ----------
        n : int
            How many rows; fewer are returned when fewer are unlabelled.
        X : array, CSR matrix, data frame, path or Source, optional
            Rows to choose from, all of which count as unlabelled; by default the unlabelled
            training rows.

        Returns
        -------
        rows : ndarray of shape (n,)
            Row numbers, counted from 0.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = truth.copy()
        >>> y[50:] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> rows = model.suggest(5)
        >>> model = model.update_labels(rows, truth[rows])
        """
        check_is_fitted(self)
        has_rows = "_problem" in self.__dict__
        if X is None and not has_rows:
            raise ParameterError(f"{HOLDS_NONE}give the rows to choose from: suggest(n, X).")
        with self._working() as engine:
            seed, pool = 0, None
            if has_rows:
                problem = self._problem_on(engine)
                seed = problem.settings.seed
                novel = self.report_.get("unlike_labels") or {"rows": ()}
                pool = Pool(problem.graph, self._model.answer, problem.labels, first=novel["rows"])
            if X is not None:
                known = None if pool is None else pool.known_features(seed)
                graph: Graph = self._graph_of(engine, self._source(X, reset=False))
                pool = Pool(graph, self._model.answer, None, known)
            assert pool is not None
            with explained(pool.graph.source.inner):
                return suggest_rows(pool, n, seed).rows

    def suggest_first(self, X: Any, n: int = 10) -> np.ndarray:
        """Return rows to label first, when there are no labels yet.

        They are typical rows that cover the clusters of the graph, those of the largest clusters
        first. The graph is that of :meth:`fit` with the same parameters; this estimator is not
        changed. A sample of the rows is read.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source
            Rows to choose from.
        n : int
            How many rows; fewer are returned when there are fewer.

        Returns
        -------
        rows : ndarray of shape (n,)
            Row numbers, counted from 0.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> model = LowRankLabelPropagation()
        >>> rows = model.suggest_first(X, 20)
        >>> y = np.full(len(X), -1)
        >>> y[rows] = truth[rows]
        >>> rows = model.fit(X, y).suggest(10)
        """
        settings = Settings.without_labels(self.get_params(deep=False), sklearn=True)
        n = positive_integer("n", n)
        reading = chosen({name: getattr(self, name) for name in READING})
        named = label_files(X, None, self, reading)
        if named is not None:
            reading |= named.not_features
        files = None if named is None else named.files
        source = as_source(X if files is None else files, **reading)
        with self._working() as engine:
            return Pipeline(engine, settings).typical_rows(source, n)

    def update_labels(self, rows: Any, labels: Any, X: Any = None, y: Any = None) -> Self:
        """Learn the labels of some training rows, without another sweep over the features.

        The result is that of :meth:`fit` with all labels so far. Only the named rows are read;
        ``transduction_`` and ``label_distributions_`` are renewed when they are next asked for.

        Parameters
        ----------
        rows : array of shape (q,)
            Numbers of training rows, counted from 0.
        labels : array of shape (q,)
            Their labels, of old or new classes. A row that has a label gets this one instead;
            -1, None, NaN or "" takes its label away.
        X, y : rows and labels as in ``fit``, optional
            The training rows and the labels so far, for an estimator that was loaded or unpickled
            and holds neither. It is fitted anew with all labels and its own parameters (those of a
            loaded one are the defaults, unless they are set), and holds the rows from then on.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_iris(return_X_y=True)
        >>> y = truth.copy()
        >>> y[1::2] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> rows = model.suggest(3)
        >>> model.update_labels(rows, truth[rows]).report_["labelled_rows"]
        78
        """
        check_is_fitted(self)
        if X is not None:
            for warning in self._fit(X, y, later=(rows, labels)):
                warnings.warn(warning, stacklevel=2)
            return self
        if "_problem" not in self.__dict__:
            raise ParameterError(
                f"{HOLDS_NONE}give the rows and the labels so far once more, and it is fitted anew "
                "with all labels: update_labels(rows, labels, X=X, y=y). A loaded model has the "
                "default parameters: give others before with set_params."
            )
        source = self._problem.graph.source
        with self._working() as engine, explained(source.inner):
            problem = relabelled(self._problem_on(engine), rows, labels)
            learnt = learn(problem)
            novelty = unlike_labels(problem, learnt.answer)
        classes = problem.labels.classes
        report = Report(
            {
                **self._model.report,
                **learnt.report,
                **reliability(problem.labels, learnt.held_out),
                "labelled_rows": len(problem.labels.rows),
                "unreached_rows": None,  # known when the answers are renewed
                "unlike_labels": novelty,
            }
        )
        self._model = replace(self._model, classes=classes, answer=learnt.answer, report=report)
        self._problem, self.n_iter_ = problem, learnt.n_iter
        self._held_out = learnt.held_out
        self.classes_, self.report_ = classes, report
        for name in ANSWERS:
            self.__dict__.pop(name, None)
        for warning in region_warnings(report):
            warnings.warn(warning, stacklevel=2)
        return self

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
            A table of rows, labels as given, suggested labels, their probabilities, and the
            probability that each is wrong. ``found["row"]`` is a column, ``found[:5]`` a shorter
            table, ``found.to_pandas()`` a data frame.

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
        >>> found[0]["row"], found[0]["label"], found[0]["suggested_label"]
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

    def _renew(self) -> None:
        """Label the training rows with the model as it is now."""
        source = self._problem.graph.source
        with self._working() as engine, explained(source.inner):
            problem = self._problem_on(engine)
            sink = ArraySink(self.classes_, source.n_rows, source.dtype, source.inner.device)
            clamp = problem.settings.clamp
            answered = problem.graph.answer(self._model.answer, sink, problem.labels, clamp=clamp)
        self.label_distributions_ = sink.probabilities
        self.transduction_ = sink.labels
        self.report_["unreached_rows"] = answered.n_unreached
        if answered.n_unreached:
            warnings.warn(unreached_warning(problem, answered.n_unreached), stacklevel=4)

    def _content(self, *, look: bool = False) -> Content:
        report, problem = self.report_, self.__dict__.get("_problem")
        names = tuple(map(str, self.classes_.tolist()))
        warned = [str(warning) for warning in region_warnings(report)]
        if report.get("unlike_labels"):
            warned.append(str(unlike_warning(report["unlike_labels"])))
        facts: dict[str, Any] = {"settings": report, "versions": versions(), "warnings": warned}
        if problem is not None:
            facts["given"] = dict(zip(names, problem.labels.rows_each.tolist(), strict=True))
            facts["features"] = problem.graph.source.inner.n_features
        # Not by asking for them: that would label all rows after an update of the labels.
        if "transduction_" in self.__dict__:
            labels = self.transduction_
            if labels.dtype == object:  # texts beside numbers have no order
                counts = Counter(labels.tolist())
            else:
                classes, n_rows = np.unique(labels, return_counts=True)
                counts = Counter(dict(zip(classes.tolist(), n_rows.tolist(), strict=True)))
            facts["found"] = dict.fromkeys(names, 0) | {
                str(n): count for n, count in counts.items()
            }
        more: dict[str, Any] = {}
        if problem is None:
            more["missing"] = (NO_ROWS,)
        elif look and not problem.graph.pairwise:
            source = problem.graph.source.inner
            with self._working() as engine, explained(source):
                problem = self._problem_on(engine)
                doubts = known_doubts(problem.labels, self._held_out)
                seed, answer = problem.settings.seed, self._model.answer
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

    def _problem_on(self, engine: Engine) -> Problem[Labels]:
        """The problem of the fit, for an engine of now: that of the fit is closed."""
        graphs = [replace(view.graph, engine=engine) for view in self._problem.views]
        return self._problem.with_graphs(graphs)

    def __copy__(self) -> Self:
        """Share everything, the training rows included."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy everything but the training rows, which are only read."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            made.__dict__[name] = value if name in HELD else deepcopy(value, memo)
        return made

    def __getstate__(self) -> Any:
        """Leave the training rows behind: a pickled estimator is as small as its model."""
        if "_problem" in self.__dict__ and "transduction_" not in self.__dict__:
            self._renew()
        state: Any = super().__getstate__()
        stored = {name: state[name] for name in state if name not in HELD}
        # Answers on a GPU could be unpickled only where there is one.
        return stored | {name: to_numpy(stored[name]) for name in ANSWERS if name in stored}

    if not TYPE_CHECKING:  # a type checker would take any name for known

        def __getattr__(self, name: str) -> Any:
            """Renew the answers after new labels, when they are asked for."""
            if name in ANSWERS and "_problem" in self.__dict__:
                self._renew()
                return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
