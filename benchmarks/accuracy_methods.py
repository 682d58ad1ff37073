"""The methods of the accuracy table: functions from labels (-1: hidden) to class probabilities.

Every method sees the same rows and labels. biglp gets rows as they come. Peers get them as one
would prepare them (:class:`Problem`):

- numbers and tables: standardised, columns of 0 and 1 left as they are; sets whose features share
  one scale as they are, standardised for logistic regression;
- text: tf-idf of unit length for logistic regression, self-training and the forest; its 128 leading
  directions (truncated SVD), of unit length again, for graphs, 5-NN and boosting: Euclidean
  distances of those are cosine distances.

Self-training sees at most the 100 leading principal directions of wide rows, and its logistic
regression stops after 100 steps: it is fitted anew up to five times on nearly all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

import accuracy_graph as graphs
from accuracy_data import LEVEL, SETS, TEXT, Rows, load

DIRECTIONS, WIDE = 128, 100


def standardised(rows: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 in each column; columns of 0 and 1 are left as they are."""
    marks = ((rows == 0) | (rows == 1)).all(axis=0)
    deviation = rows.std(axis=0, dtype=float)
    mean = np.where(marks, 0, rows.mean(axis=0, dtype=float))
    scale = np.where(marks | (deviation == 0), 1, deviation)
    return ((rows - mean) / scale).astype(np.float32)


class Problem:
    """A part of a data set and what methods derive from its rows, not from labels.

    What takes long is kept in a folder: it is computed once for all draws and processes.

    Parameters
    ----------
    data : Path
        Folder with the data sets.
    cache : Path
        Folder for what is derived.
    name, size
        The set, and the number of rows.
    """

    def __init__(self, data: Path, cache: Path, name: str, size: int) -> None:
        self.data, self.cache, self.name, self.size = data, cache / f"{name}_{size}", name, size
        self.kind = SETS[name].kind
        self.draw = 0
        self.engine = "threads"
        self.report: Mapping[str, object] = {}
        """What biglp reported last."""

    def prepare(self, *, graph: bool) -> None:
        """Write the files that the properties below read."""
        last = self.cache / ("near.npy" if graph else "truth.npy")
        if last.exists():
            return
        self.cache.mkdir(parents=True, exist_ok=True)
        rows, truth = load(self.data, self.name, self.size)
        if sparse.issparse(rows):
            sparse.save_npz(self.cache / "rows.npz", rows)
            words = TfidfTransformer().fit_transform(rows) if rows.max() > 1 else rows
            words = sparse.csr_matrix(normalize(words), dtype=np.float32)
            sparse.save_npz(self.cache / "words.npz", words)
            leading = TruncatedSVD(DIRECTIONS, random_state=0).fit_transform(words)
            self._keep("level", normalize(leading))
        else:
            self._keep("rows", rows)
            self._keep("level", rows if self.kind == LEVEL else standardised(rows))
            self._keep("standard", standardised(rows))
        if graph:
            distances, near = graphs.nearest(self.level)
            self._keep("distances", distances)
            self._keep("near", near)
        self._keep("truth", truth)

    def _keep(self, name: str, values: np.ndarray) -> None:
        np.save(self.cache / f"{name}.npy", values)

    def _kept(self, name: str) -> np.ndarray:
        return np.asarray(np.load(self.cache / f"{name}.npy", mmap_mode="r"))

    @cached_property
    def truth(self) -> np.ndarray:
        """Classes from 0 on."""
        return self._kept("truth")

    @cached_property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.truth.max()) + 1

    @cached_property
    def rows(self) -> Rows:
        """As they come; for text, CSR."""
        if self.kind == TEXT:
            return sparse.csr_matrix(sparse.load_npz(self.cache / "rows.npz"))
        return self._kept("rows")

    @cached_property
    def linear(self) -> Rows:
        """For linear models."""
        if self.kind == TEXT:
            return sparse.csr_matrix(sparse.load_npz(self.cache / "words.npz"))
        return self._kept("standard")

    @cached_property
    def narrow(self) -> Rows:
        """For linear models of many rows."""
        if self.kind == TEXT or self.linear.shape[1] <= WIDE:
            return self.linear
        return PCA(WIDE, random_state=0).fit_transform(self.linear)

    @cached_property
    def level(self) -> np.ndarray:
        """For methods that measure distances."""
        return self._kept("level")

    @cached_property
    def near(self) -> np.ndarray:
        """Numbers of the nearest rows of each row, itself first."""
        return self._kept("near")

    @cached_property
    def spreading_graph(self) -> sparse.csr_matrix:
        """Normalised graph of the exact neighbours."""
        return graphs.symmetric(graphs.graph_of(self.near[:, 1:]))

    @cached_property
    def poisson_weights(self) -> sparse.csr_matrix:
        """Weights of Poisson learning."""
        return graphs.poisson_weights(self._kept("distances"), self.near)

    def biglp(self, labels: np.ndarray) -> np.ndarray:
        """Biglp as it comes, on the rows as they come."""
        from biglp import LowRankLabelPropagation

        # Other landmarks for each draw: one set of them for all would decide many cells.
        model = LowRankLabelPropagation(random_state=self.draw, engine=self.engine)
        model.fit(self.rows, labels)
        self.report = model.report_
        return self._all_classes(model.label_distributions_, model.classes_)

    def exact_graph(self, labels: np.ndarray) -> np.ndarray:
        """Label spreading with class mass on the exact graph of 10 nearest neighbours, α = 0.99."""
        return graphs.spreading(self.spreading_graph, labels, self.classes)

    def label_spreading(self, labels: np.ndarray) -> np.ndarray:
        """scikit-learn's LabelSpreading(kernel="knn"); its graph is that of kneighbors_graph."""
        graph = graphs.graph_of(self.near[:, : graphs.NEIGHBOURS])
        # The class takes a function for a kernel: the same matrix, computed once for all draws.
        model = LabelSpreading(kernel=lambda *_: graph, alpha=0.9, max_iter=1000, tol=1e-4)
        model.fit(self.level, labels)
        found = self._all_classes(model.label_distributions_, model.classes_)
        return graphs.normalised(found, graphs.shares(labels, self.classes))

    def poisson(self, labels: np.ndarray) -> np.ndarray:
        """Poisson learning on the same neighbours."""
        return graphs.poisson(self.poisson_weights, labels, self.classes)

    def nearest_five(self, labels: np.ndarray) -> np.ndarray:
        """5-NN."""
        model = KNeighborsClassifier(min(5, int((labels >= 0).sum())))
        return self._supervised(model, self.level, labels)

    def logistic(self, labels: np.ndarray) -> np.ndarray:
        """Logistic regression."""
        return self._supervised(LogisticRegression(max_iter=500), self.linear, labels)

    def boosting(self, labels: np.ndarray) -> np.ndarray:
        """Gradient boosting; small leaves, because there are few labels."""
        rows = self.level if self.kind == TEXT else self.rows
        each = int((labels >= 0).sum()) // (int(labels.max()) + 1)
        model = HistGradientBoostingClassifier(
            max_iter=50,
            min_samples_leaf=2 if each < 20 else 5,
            # Fewer bins are five times as fast on pixels, and no less accurate.
            max_bins=32 if rows.shape[1] > WIDE else 255,
            early_stopping=False,
        )
        return self._supervised(model, rows, labels)

    def forest(self, labels: np.ndarray) -> np.ndarray:
        """Random forest of 300 trees."""
        model = RandomForestClassifier(300, random_state=self.draw)
        return self._supervised(model, self.linear if self.kind == TEXT else self.rows, labels)

    def self_training(self, labels: np.ndarray) -> np.ndarray:
        """Logistic regression that takes its own answers above 75 % for labels."""
        model = SelfTrainingClassifier(LogisticRegression(max_iter=100), max_iter=5)
        model.fit(self.narrow, labels)
        return self._all_classes(model.predict_proba(self.narrow), model.classes_)

    def class_shares(self, labels: np.ndarray) -> np.ndarray:
        """The same answer for all rows."""
        return np.tile(graphs.shares(labels, self.classes), (len(labels), 1))

    def _supervised(self, model: object, rows: Rows, labels: np.ndarray) -> np.ndarray:
        """Probabilities by a model of scikit-learn's that learns from labelled rows alone."""
        known = labels >= 0
        model.fit(rows[known], labels[known])
        return self._all_classes(model.predict_proba(rows), model.classes_)

    def _all_classes(self, stated: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Probabilities with a column for every class, 0 for those without a label."""
        whole = np.zeros((len(stated), self.classes))
        whole[:, found] = stated
        return whole


METHODS: dict[str, Callable[[Problem, np.ndarray], np.ndarray]] = {
    "biglp": Problem.biglp,
    "exact 10-NN graph": Problem.exact_graph,
    "LabelSpreading(knn)": Problem.label_spreading,
    "Poisson": Problem.poisson,
    "5-NN": Problem.nearest_five,
    "logistic regression": Problem.logistic,
    "gradient boosting": Problem.boosting,
    "forest": Problem.forest,
    "self-training": Problem.self_training,
    "class shares": Problem.class_shares,
}
OURS, CONSTANT = "biglp", "class shares"
ON_GRAPH = {"exact 10-NN graph", "LabelSpreading(knn)", "Poisson"}
"""Methods that need the exact neighbours."""
