"""The classifier."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from biglp._core.arrays import namespace, to_numpy
from biglp._core.errors import BigLPWarning, LabelError, ParameterError
from biglp._core.parameters import chosen, positive_integer
from biglp._core.settings import Settings
from biglp._fit.pipeline import Pipeline
from biglp._labels.labels import (
    LabelsRead,
    as_column,
    encode_labels,
    given_weights,
    merged_labels,
    n_columns,
    only_classes,
    read_distributions,
    unlabelled,
    weighted,
)
from biglp._output import ArraySink
from biglp._rows import working_dtype
from biglp.estimators.active import ActiveLearner
from biglp.estimators.base import READING, label_files

WIDE = {"bandwidth_factor": 1.0}
PAPER_METHODS: dict[str, dict[str, Any]] = {
    "nystrom-random": {"factor": "nystrom", "landmarks": "random", "factor_params": WIDE},
    "nystrom-kmeans": {"factor": "nystrom", "landmarks": "kmeans", "factor_params": WIDE},
    "glnp-mu": {"factor": "glnp-mu", "factor_params": {"start": "uniform"}},
    "glnp-apgd": {"factor": "glnp", "factor_params": {"start": "uniform"}},
    "linear": {"factor": "linear"},
}
"""The paper's own settings."""
KEPT_BYTES = 32
"""Stored features of a row that are kept after ``fit``; larger ones are made again."""


class LowRankLabelPropagation(ClassifierMixin, ActiveLearner):
    """Semi-supervised classification by label propagation on a low-rank similarity graph.

    Cost and memory grow linearly with the number of rows; rows are read two or three times and
    never all held. No parameter needs to be set.

    Parameters
    ----------
    factor : {"auto", "anchors", "nystrom", "glnp", "glnp-mu", "linear", "precomputed"}
        Low-rank factor of the graph. "auto" is "anchors": each row is tied to its nearest
        landmarks. "nystrom" approximates the Gaussian kernel, "glnp" learns the factor by
        accelerated projected gradient ("glnp-mu" by multiplicative updates), "linear" is the
        linear kernel. With "precomputed", X is a graph of your own: an n_rows × n_rows matrix of
        similarities, sparse or dense, 0 where two rows are not tied together (not distances).
        (X + Xᵀ)/2 without its diagonal is used, and new rows are given by their similarities to
        the training rows.
    n_landmarks : int or "auto"
        Number of landmarks, the rank k of the graph.
    landmarks : {"kmeans", "kmeans-full", "random"} or array of shape (k, n_features)
        How landmarks are chosen: k-means on a sample, k-means over all rows, random rows, or given.
    bandwidth : float or "auto"
        σ of the Gaussian kernel, after scaling of the features.
    alpha : float or "auto"
        Share of a row's score that comes from its neighbours, in (0, 1). "auto" chooses by
        leave-one-out where every class has 3 labels, else takes 0.99; the committee asks several.
    class_balance : {"auto", "mass", "share", "centre", "none"} or array of shape (n_classes,)
        "mass" makes classes equally heavy, "share" sets thresholds so that the answers have the
        class shares of the labels, "centre" takes the mean of the labels off each label, an array
        gives the classes' priors, "auto" chooses the prior by leave-one-out.
    filter : {"auto", "spreading", "poisson"}
        How labels spread. "spreading" is label spreading at ``alpha``; "poisson" is Poisson
        learning, in which labels are sources and their mean is drained from all of them, made for a
        few labels a class. "auto" is the committee with factor "auto", else label spreading.
    clamp : {"soft", "hard"}
        With "hard", labelled training rows keep exactly the labels they were given in
        ``transduction_`` and ``label_distributions_``. With "soft" a label is strong evidence that
        the graph can overrule: it adds (1 − α) times its weight to its class's score, or, where the
        committee decides, is taken to be right with a probability of 95 % (1 − 0.05^w for a label
        of weight w). New rows are not concerned.
    scaling : {"auto", "none", "standard", "minmax", "log", "unit", "text", "table"}
        Scaling of the features, learnt from a sample of the rows. "log" puts long tails on a
        logarithmic scale, "unit" gives rows length 1, "text" weighs words and projects rows on
        leading directions, "table" takes each column by its kind: plain numbers, long tails,
        columns of 0 and 1. "auto" is "text" for sparse rows of words, "unit" for embeddings, "none"
        where features share one scale, "table" elsewhere.
    projection : int, "auto" or "none"
        Number of principal directions that rows are projected on. "auto" is 64 for text, 40 for
        wide rows such as images where these hold most of the variance, and none elsewhere.
    effort : {"fast", "balanced", "best"}
        What may be spent for accuracy; ``report_["left_out"]`` says what more would cost and bring.
    classes : list, dict or None
        Names of the classes. Where texts are understood (``text_model``), rows get their first
        labels from these alone: a dict has a description of each class, by the value of its
        label; a list is taken for descriptions where there is no label at all, and names the
        columns of label distributions.
    class_vectors : dict or None
        The same for rows that are embeddings: a vector of each class, by the value of its label,
        made by the model that made the embeddings.
    solver : {"closed_form", "iterative"}
        Exact solution, or Algorithm S.5 of the paper.
    max_iter, tol : int, float
        Most iterations and relative tolerance of the iterative solver.
    engine : {"serial", "threads", "mpi", "dask"} or Engine
        How the work is shared out.
    device, precision : str
        Where the arithmetic runs: "cpu", "cuda" or "cuda:N", or "auto", the GPU where it is worth
        it. And how there: in "float32", or "tf32", which is faster and has three digits.
    gpu_memory, memory : str or int
        What a fit may take of the GPU's memory ("auto" is most of what is free) and of this
        machine's, such as "4GB", rows given as arrays not counted; "auto" is half of what is free.
        Ranks and workers that share the machine share it.
    factor_params : dict, optional
        Finer settings of the factor: ``n_nearest`` and ``bandwidth_factor`` (the automatic
        bandwidth in units of the landmarks' spacing) for anchors, ``bandwidth_factor`` for nystrom;
        ``shift`` (True) for the linear kernel; ``start``, ``max_iter`` and ``tol`` for GLNP.
    random_state : int, RandomState, Generator or None
        Seed; None is 0. The answer does not depend on the number of threads or processes.
    verbose : bool
        Log the progress of each sweep.
    label_column : str, optional
        Column that holds labels, where X is a table in files; no feature. y may be None then.
    metadata : path or list of paths, optional
        A table with a line for each row of X, whose columns ``label_column`` and ``id_column`` are.
    id_column : str, optional
        Column by which rows are known, no feature; files of labels that have it are joined by it.
    columns, drop : list of str, optional
        Feature columns of a data frame or a table in files, in this order, and columns that are
        none. By default IDs and columns of one value are none (``report_["left_out_columns"]``).
    categorical : {"auto", "onehot", "error"}
        What to do with text columns. "auto" makes a feature of each of a few categories, takes of
        many the most frequent and how frequent each is, and reads dates and numbers; "onehot" makes
        a feature of each category, "error" refuses text.
    missing : {"auto", "mean", "error"}
        What to do with missing values of a table. "auto" fills numbers with the median, marks them
        by a second feature, and makes a category of missing ones; "mean" fills in the mean; "error"
        refuses them. Arrays have no "auto": missing values are refused, or filled with "mean".
    text : list of str, optional
        Columns of sentences whose words are counted; without it they are left out.
    text_model : str, default="auto"
        What says what texts mean, beside their words: a folder as model2vec saves it, "auto" for
        that of ``biglp[text]`` where it is installed, or "none".
    strict : bool
        Refuse tables, in ``fit`` and ``predict``, of which anything would be filled in or left out;
        by default that is counted and told.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels that occur, sorted, of the type that they were given in: integers stay integers
        where some labels are missing (None, NaN or null), and so do truth values and text.
    transduction_ : ndarray of shape (n_rows,)
        Label of every training row, of the same type; ``predict`` gives this type too.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Class probabilities of every training row.
    report_ : dict that prints as a few lines
        What was chosen (factor, landmarks, bandwidth, alpha, prior) and found (rank, repaired
        rows, rows that no label reaches, leave-one-out accuracy of each candidate, labels that
        are probably wrong). By default also ``estimated_accuracy``: share of the
        unlabelled rows that are right (``accuracy``) with its 90 % ``interval``,
        ``balanced_accuracy``, ``recall`` of each class, the ``base_rate`` of the
        ``largest_class``, and what the ``next_labels`` may add; ``trustworthy`` when the interval
        is at most 20 points wide and the labels do not come from one region of the rows.
    n_iter_ : int
        Iterations of the solver; 1 for the closed form.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, where it has names: a data frame or a file of a table.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from biglp import LowRankLabelPropagation
    >>> X, truth = load_digits(return_X_y=True)
    >>> y = truth.copy()
    >>> y[50:] = -1
    >>> model = LowRankLabelPropagation(random_state=0).fit(X, y)
    >>> bool((model.transduction_ == truth).mean() > 0.85)
    True
    """

    _measured: ClassVar[bool] = False

    def __init__(
        self,
        factor: str = "auto",
        n_landmarks: int | str = "auto",
        landmarks: Any = "kmeans",
        bandwidth: float | str = "auto",
        alpha: float | str = "auto",
        class_balance: Any = "auto",
        filter: str = "auto",
        clamp: str = "soft",
        scaling: str = "auto",
        projection: int | str = "auto",
        classes: Any = None,
        class_vectors: Any = None,
        solver: str = "closed_form",
        max_iter: int = 10_000,
        tol: float = 1e-7,
        engine: Any = "threads",
        device: str = "cpu",
        gpu_memory: str | int = "auto",
        precision: str = "float32",
        memory: str | int = "auto",
        factor_params: dict[str, Any] | None = None,
        random_state: Any = None,
        verbose: bool = False,
        label_column: str | None = None,
        id_column: str | None = None,
        columns: Any = None,
        drop: Any = None,
        categorical: str = "auto",
        missing: str = "auto",
        text: Any = None,
        text_model: str = "auto",
        metadata: Any = None,
        effort: str = "balanced",
        strict: bool = False,
    ) -> None:
        self.factor = factor
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.class_balance = class_balance
        self.filter = filter
        self.clamp = clamp
        self.scaling = scaling
        self.projection = projection
        self.classes = classes
        self.class_vectors = class_vectors
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.device = device
        self.gpu_memory = gpu_memory
        self.precision = precision
        self.memory = memory
        self.factor_params = factor_params
        self.random_state = random_state
        self.verbose = verbose
        self.label_column = label_column
        self.id_column = id_column
        self.columns = columns
        self.drop = drop
        self.categorical = categorical
        self.missing = missing
        self.text = text
        self.text_model = text_model
        self.metadata = metadata
        self.effort = effort
        self.strict = strict

    @classmethod
    def paper(cls, method: str = "nystrom-kmeans", k: int = 100, **changes: Any) -> Self:
        """Return an estimator with the paper's own settings: α = 0.01, features as they are.

        What the paper leaves open is chosen so that its tables come out (docs/paper.md): a class
        threshold at the class shares of the labels, and a bandwidth of one spacing of landmarks.

        Parameters
        ----------
        method : {"nystrom-random", "nystrom-kmeans", "glnp-mu", "glnp-apgd", "linear"}
            Low-rank factor.
        k : int
            Number of landmarks; the linear kernel has none.
        **changes
            Any other parameter of the estimator.
        """
        if method not in PAPER_METHODS:
            raise ParameterError(
                f"method={method!r} is not one of the paper's; use {', '.join(PAPER_METHODS)}."
            )
        settings = {"n_landmarks": k, "alpha": 0.01, "class_balance": "share", "scaling": "none"}
        return cls(**{**settings, **PAPER_METHODS[method], **changes})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from all rows and the labels of some.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source of shape (n_rows, n_features)
            The rows; docs/recipes.md lists the kinds. With ``factor="precomputed"`` the
            similarities of all rows to all rows.
        y : array of shape (n_rows,) or (n_rows, n_classes)
            Labels of any type; -1, None, NaN or "" where unknown. Or label distributions, as an
            array or a sparse matrix: numbers of 0 or more, which are made to add up to 1 in each
            row (of zeros and ones alone, one 1 a row); zeros or NaN throughout where unknown. Or
            files: a path or several, of one label a row, of ``row,label`` or ``id,label``, or what
            a labelling tool exports; later ones count more, and all of them more than
            ``label_column``.
        sample_weight : array of shape (n_rows,), optional
            Confidence of each label: one of weight 2 is that label twice, one of weight 0 is none.
            Weights of unlabelled rows are ignored: all rows shape the graph alike.
        """
        for warning in self._fit(X, y, sample_weight):
            warnings.warn(warning, stacklevel=2)
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any = None, later: Any = None
    ) -> list[BigLPWarning]:
        """Fit, and return what the user should know; ``later`` rows and labels replace those of y.

        Steps: check the parameters, open the rows, read the labels, learn, keep what was learnt.
        """
        settings = Settings.of(self.get_params(deep=False), sklearn=True)
        reading = chosen({name: getattr(self, name) for name in READING})
        named = label_files(X, y, self, reading)
        if named is not None:  # its files are open for their columns already
            X, reading = X if named.files is None else named.files, reading | named.not_features
        source = self._source(X, reset=True, **reading)
        n_rows = source.n_rows
        classes = settings.answer.classes
        if classes is not None and (named is None or not named.anywhere) and no_label(y):
            read = LabelsRead(only_classes(classes, n_rows))
        elif named is None or not named.anywhere:
            columns = list(classes) if classes is not None and n_columns(y) > 1 else None
            least = 2 if classes is None else 1  # others may be known by their names
            read = LabelsRead(encode_labels(y, n_rows, sample_weight, columns, least=least))
        else:
            read = named.gather(n_rows)
            if sample_weight is not None:
                weights = given_weights(sample_weight, read.labels.rows, n_rows)
                read = replace(read, labels=weighted(read.labels, weights))
        if later is not None:
            before = self._model.report.get("rows", n_rows)
            if n_rows != before:
                raise ParameterError(
                    f"X has {n_rows:,} rows, but the model was fitted on {before:,}; give the "
                    "training rows, or call fit with other rows and all labels."
                )
            merged, _ = merged_labels(read.labels, *later)
            read = replace(read, labels=merged)
        with self._working() as engine:
            pipeline = Pipeline(engine, settings)
            labels = pipeline.with_names(source, read.labels)
            sink = ArraySink(labels.classes, n_rows, working_dtype(source.dtype), source.device)
            fitted = pipeline.fit(source, labels, sink)
        self._model = replace(fitted.model, id_column=self.id_column)
        self._problem, self.n_iter_ = fitted.problem, fitted.n_iter
        self._held_out = fitted.held_out
        for graph in (view.graph for view in self._problem.views):
            # Copies of rows on a device go, and stored features that would take much memory.
            graph.sample.let_go(after_fit=True)
            for block in graph.blocks:
                block.memory.pop("rows", None)
                stored = block.memory.get("features", ())
                if not stored or not isinstance(stored, tuple):  # none, or in a file
                    continue
                if sum(array.nbytes for array in stored) > KEPT_BYTES * block.n_rows:
                    block.memory.clear()
        self.classes_ = labels.classes
        self.report_ = fitted.model.report
        self.label_distributions_ = sink.probabilities
        self.transduction_ = sink.labels
        return [*read.suspicions(all_labelled=False), *fitted.warnings()]

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row.  (n_rows,)."""
        return self._score(X).labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of each row; rows add up to 1.  (n_rows, n_classes).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_iris(return_X_y=True)
        >>> y = truth.copy()
        >>> y[1::2] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> model.predict_proba(X[:2]).shape, model.predict_log_proba(X[:2]).shape
        ((2, 3), (2, 3))
        >>> model.predict(X[:2]), model.decision_function(X[:2]).argmax(axis=1)
        (array([0, 0]), array([0, 0]))
        """
        return self._score(X).probabilities

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the class probabilities; −inf for 0.  (n_rows, n_classes)."""
        with np.errstate(divide="ignore"):
            probabilities = self.predict_proba(X)
            return namespace(probabilities).log(probabilities)

    def predict_top(self, X: Any, n: int = 3) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest classes of each row, the likeliest first, as ``--top`` writes them.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source of shape (n_rows, n_features)
        n : int
            How many classes, at most as many as there are.

        Returns
        -------
        labels : ndarray of shape (n_rows, n)
            The first column is what :meth:`predict` says.
        probabilities : ndarray of shape (n_rows, n)

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = truth.copy()
        >>> y[50:] = -1
        >>> labels, probabilities = LowRankLabelPropagation().fit(X, y).predict_top(X, 2)
        >>> labels.shape, probabilities.shape
        ((1797, 2), (1797, 2))
        """
        check_is_fitted(self)
        if positive_integer("n", n) > len(self.classes_):
            raise ParameterError(
                f"n={n} is more than the {len(self.classes_)} classes; give 1 to "
                f"{len(self.classes_)}."
            )
        probabilities = to_numpy(self.predict_proba(X))
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :n]
        return self.classes_[best], np.take_along_axis(probabilities, best, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how far each row is on the side of a class, as finite logarithms.

        Of two classes the log-odds of the second, ``classes_[1]``: above 0 where :meth:`predict`
        says it.  (n_rows,). Of more classes the logarithms of their probabilities, of which the
        largest is the class of :meth:`predict`.  (n_rows, n_classes).
        """
        probabilities = to_numpy(self.predict_proba(X))
        # A probability of 0 is one that is too small to be written.
        logs = np.log(
            np.maximum(probabilities, np.finfo(probabilities.dtype).tiny), dtype=np.float64
        )
        return logs if logs.shape[1] > 2 else logs[:, 1] - logs[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the labelled rows whose label :meth:`predict` finds.

        Rows without a label in y count for nothing. Do not give labels that the model has learnt:
        :class:`biglp.SemiSupervisedKFold` hides some, and ``report_["estimated_accuracy"]`` is an
        estimate for all unlabelled rows.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source of shape (n_rows, n_features)
        y : array of shape (n_rows,) or (n_rows, n_classes)
            Labels or label distributions, of which the likeliest class counts; where unknown as in
            ``fit``.
        sample_weight : array of shape (n_rows,), optional
            How much each label counts.

        Raises
        ------
        LabelError
            When no row has a label.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_iris(return_X_y=True)
        >>> y = truth.copy()
        >>> y[1::2] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> model.score(X[1::2], truth[1::2]) > 0.9
        True
        >>> paper = LowRankLabelPropagation.paper("nystrom-kmeans", k=50).fit(X, y)
        >>> paper.score(X[1::2], truth[1::2]) > 0.8
        True
        """
        predicted = to_numpy(self.predict(X))
        rows, truth = self._truth(y, len(predicted))
        weights = None
        if sample_weight is not None:
            weights = given_weights(sample_weight, rows, len(predicted))
        if not len(rows) or (weights is not None and not weights.any()):
            raise LabelError(
                f"none of the {len(predicted):,} rows has a label in y (all are -1, None, NaN or "
                "'', or of weight zero), so there is nothing to score; give rows with labels, in "
                "cross-validation by cv=SemiSupervisedKFold()."
            )
        right = predicted[rows].astype(object) == truth.astype(object)
        return float(np.average(right, weights=weights))

    def _truth(self, y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that have a label, and their labels."""
        if n_columns(y) > 1:
            rows, distributions = read_distributions(y, n_rows)
            n_given, n_classes = distributions.shape[1], len(self.classes_)
            if n_given != n_classes:
                raise LabelError(
                    f"y has {n_given} columns, but the model has {n_classes} classes; give a "
                    "column for each class, in the order of classes_."
                )
            return rows, self.classes_[distributions.argmax(axis=1)]
        values = as_column(y)
        if len(values) != n_rows:
            raise LabelError(
                f"y has {len(values):,} entries but X has {n_rows:,} rows; give one label a row, "
                "with -1, None, NaN or '' where the label is unknown."
            )
        rows = np.flatnonzero(~unlabelled(values))
        truth = values[rows]
        if len(rows):
            label, known = truth.tolist()[0], self.classes_.tolist()[0]
            if isinstance(label, (str, bytes)) != isinstance(known, (str, bytes)):
                raise LabelError(
                    f"y has labels such as {label!r}, but the classes of the model are such as "
                    f"{known!r}; give y in the type of classes_."
                )
        return rows, truth

    def _score(self, X: Any) -> ArraySink:
        check_is_fitted(self)
        source = self._source(X, reset=False)
        sink = ArraySink(self.classes_, source.n_rows, self._model.dtype, source.device)
        self._score_rows(source, sink)
        return sink

    def _loaded(self) -> None:
        self.classes_ = self._model.classes


def no_label(y: Any) -> bool:
    """Whether y holds no label at all."""
    return y is None or (n_columns(y) <= 1 and bool(unlabelled(as_column(y)).all()))
