"""Semi-supervised regression on a low-rank similarity graph, with scikit-learn's conventions."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from biglp._core.arrays import to_numpy
from biglp._core.parameters import chosen
from biglp._core.progress import versions
from biglp._core.settings import Settings
from biglp._fit.pipeline import Pipeline
from biglp._labels.targets import encode_targets
from biglp._output import ValuesSink
from biglp._report.page import Content
from biglp.estimators.base import EVERY, NO_ROWS, READING, Estimator


class LowRankLabelPropagationRegressor(RegressorMixin, Estimator):
    """Semi-supervised regression by smoothing on a low-rank similarity graph.

    A row's value is a mean of the labels it is tied to through the graph of all rows, blended with
    ridge regression on the labelled rows and with the plain mean. How much each counts is decided
    by squared errors on labels that were left out, so that where the graph does not help, the
    answer is that of ridge regression.

    Parameters
    ----------
    factor : {"auto", "anchors", "nystrom", "glnp", "glnp-mu", "linear"}
        Low-rank factor of the graph; "auto" is "anchors". "precomputed" is for classes only: ridge
        regression needs rows.
    n_landmarks : int or "auto"
        Number of landmarks, the rank k of the graph.
    landmarks : {"kmeans", "kmeans-full", "random"} or array of shape (k, n_features)
        How landmarks are chosen: k-means on a sample, k-means over all rows, random rows, or given.
    bandwidth : float or "auto"
        σ of the Gaussian kernel, after scaling of the features.
    alpha : float or "auto"
        How far labels spread, in (0, 1); "auto" chooses by exact leave-one-out.
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
        What may be spent for accuracy: the number of landmarks. ``report_["left_out"]``
        says what more would have cost and brought.
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
        Finer settings of the factor, as in :class:`biglp.LowRankLabelPropagation`.
    random_state : int, RandomState, Generator or None
        Seed; None is 0. The answer does not depend on the number of threads or processes.
    verbose : bool
        Log the progress of each sweep.
    columns, drop : list of str, optional
        Feature columns of a data frame or a table in files, in this order, and columns that are no
        features. By default all columns are features that say something of a row: IDs, numbers of
        the rows and columns of one value do not (``report_["left_out_columns"]``).
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
    transduction_ : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Value of every training row: what :meth:`predict` says of it, also where its label is known.
    report_ : dict that prints as a few lines
        What was chosen and found: α, the weights of the graph, of ridge regression and of the mean
        for each target, and their errors on labels that were left out.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, where it has names: a data frame or a file of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_swiss_roll
    >>> from biglp import LowRankLabelPropagationRegressor
    >>> X, truth = make_swiss_roll(2000, random_state=0)
    >>> y = np.where(np.arange(2000) < 50, truth, np.nan)
    >>> model = LowRankLabelPropagationRegressor(random_state=0).fit(X, y)
    >>> bool(np.abs(model.transduction_ - truth).mean() < 1)
    True
    """

    _measured: ClassVar[bool] = True

    def __init__(
        self,
        factor: str = "auto",
        n_landmarks: int | str = "auto",
        landmarks: Any = "kmeans",
        bandwidth: float | str = "auto",
        alpha: float | str = "auto",
        scaling: str = "auto",
        projection: int | str = "auto",
        engine: Any = "threads",
        device: str = "cpu",
        gpu_memory: str | int = "auto",
        precision: str = "float32",
        memory: str | int = "auto",
        factor_params: dict[str, Any] | None = None,
        random_state: Any = None,
        verbose: bool = False,
        columns: Any = None,
        drop: Any = None,
        categorical: str = "auto",
        missing: str = "auto",
        text: Any = None,
        text_model: str = "auto",
        effort: str = "balanced",
        strict: bool = False,
    ) -> None:
        self.factor = factor
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.scaling = scaling
        self.projection = projection
        self.engine = engine
        self.device = device
        self.gpu_memory = gpu_memory
        self.precision = precision
        self.memory = memory
        self.factor_params = factor_params
        self.random_state = random_state
        self.verbose = verbose
        self.columns = columns
        self.drop = drop
        self.categorical = categorical
        self.missing = missing
        self.text = text
        self.text_model = text_model
        self.effort = effort
        self.strict = strict

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from all rows and the targets of some.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source of shape (n_rows, n_features)
        y : array of shape (n_rows,) or (n_rows, n_targets)
            Numbers; NaN where unknown, for all targets of a row at once.
        sample_weight : array of shape (n_rows,), optional
            How much each label counts, 0 or more; 0 leaves it out. Weights of unlabelled rows are
            ignored: all rows shape the graph alike.
        """
        settings = Settings.of(self.get_params(deep=False), regression=True, sklearn=True)
        reading = chosen({name: getattr(self, name) for name in READING})
        source = self._source(X, reset=True, **reading)
        targets = encode_targets(y, source.n_rows, sample_weight)
        sink = ValuesSink(source.n_rows, len(targets.mean), source.device)
        with self._working() as engine:
            fitted = Pipeline(engine, settings).fit(source, targets, sink)
        self._model = fitted.model
        self._one_target = np.asarray(y).ndim == 1
        self.report_ = fitted.model.report
        self.transduction_ = self._shaped(sink.values)
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of each row.  (n_rows,) or (n_rows, n_targets), as y was."""
        check_is_fitted(self)
        source = self._source(X, reset=False)
        sink = ValuesSink(source.n_rows, len(self._model.classes), source.device)
        self._score_rows(source, sink)
        return self._shaped(sink.values)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the share of the targets' variance that :meth:`predict` explains.

        Rows whose target is NaN count for nothing; a LabelError says that there is no other.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source of shape (n_rows, n_features)
        y : array of shape (n_rows,) or (n_rows, n_targets)
            Numbers; NaN where unknown.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_swiss_roll
        >>> from biglp import LowRankLabelPropagationRegressor
        >>> X, truth = make_swiss_roll(500, random_state=0)
        >>> y = np.where(np.arange(500) < 60, truth, np.nan)
        >>> model = LowRankLabelPropagationRegressor().fit(X, y)
        >>> model.score(X[60:], truth[60:]) > 0.9, model.predict(X[:2]).shape
        (True, (2,))
        """
        predicted = to_numpy(self.predict(X))
        known = encode_targets(y, len(predicted), sample_weight)
        truth = np.asarray(y, dtype=np.float64)[known.rows]
        return float(r2_score(truth, predicted[known.rows], sample_weight=known.weights))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_target else values

    def _content(self, *, look: bool = False) -> Content:
        report, values = self.report_, self.__dict__.get("transduction_")
        return Content(
            title=f"{report.get('rows', 0):,} rows given values from "
            f"{report.get('labelled_rows', 0):,} labels",
            facts={"settings": report, "versions": versions()},
            values=None if values is None else values.reshape(len(values), -1)[:, 0],
            going_on=EVERY,
            missing=() if values is not None else (NO_ROWS,),
        )

    def _loaded(self) -> None:
        self._one_target = len(self._model.classes) == 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
