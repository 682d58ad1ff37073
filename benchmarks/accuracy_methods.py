"""The methods of the accuracy table: each is a function from labels (-1: hidden) to predictions.

Every method sees the same rows and labels. Peers get rows as one would prepare them: as they are
where features share one scale (pixels, indicators), else standardised. What does not depend on the
labels, such as the graph of nearest neighbours, is computed once for all draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

from biglp import LowRankLabelPropagation
from biglp._sources import Scaling

NEIGHBOURS = 10


class Problem:
    """Rows of a data set and what the peers derive from them.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
    """

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        self.stated = np.empty(0)
        self.draw = 0
        """Probability of each label that biglp gave last."""

    @cached_property
    def scaled(self) -> np.ndarray:
        """Rows for methods that measure distances."""
        scaling = Scaling.from_sample(self.rows, "auto")
        if scaling.kind != "none":
            scaling = Scaling.from_sample(self.rows, "standard")
        return np.asarray(scaling.apply(self.rows))

    @cached_property
    def standard(self) -> np.ndarray:
        """Standardised rows."""
        return np.asarray(Scaling.from_sample(self.rows, "standard").apply(self.rows))

    @cached_property
    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances and numbers of the nearest rows of each row, itself first."""
        found = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(self.scaled)
        distances, numbers = found.kneighbors(self.scaled)
        return distances, numbers

    def graph(self, *, itself: bool) -> sparse.csr_matrix:
        """Graph of nearest neighbours with weights 1, not symmetric."""
        n = len(self.rows)
        near = self.nearest[1][:, :NEIGHBOURS] if itself else self.nearest[1][:, 1:]
        starts = np.arange(0, near.size + 1, near.shape[1])
        return sparse.csr_matrix((np.ones(near.size), near.ravel(), starts), shape=(n, n))

    @cached_property
    def normalised_graph(self) -> sparse.csr_matrix:
        """D^(−1/2) W D^(−1/2) of the symmetric graph."""
        graph = self.graph(itself=False)
        graph = graph.maximum(graph.T)
        root = sparse.diags(1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
        return (root @ graph @ root).tocsr()

    @cached_property
    def poisson_weights(self) -> sparse.csr_matrix:
        """Graphlearning's own weights on the same neighbours."""
        import graphlearning

        # Its Gaussian weights are NaN where ten neighbours are copies of a row.
        distances, numbers = self.nearest
        copies = bool((distances[:, -1] == 0).any())
        return graphlearning.weightmatrix.knn(
            self.scaled,
            NEIGHBOURS,
            kernel="uniform" if copies else "gaussian",
            knn_data=(numbers, distances),
        )

    def biglp(self, labels: np.ndarray) -> np.ndarray:
        """Biglp as it comes, on the rows as they come."""
        # Other landmarks for each draw: one set of them for all would decide many cells.
        model = LowRankLabelPropagation(random_state=self.draw).fit(self.rows, labels)
        self.stated = model.label_distributions_.max(axis=1)
        return np.asarray(model.transduction_)

    def exact_graph(self, labels: np.ndarray) -> np.ndarray:
        """Label spreading with class mass on the exact graph of 10 nearest neighbours, α = 0.99."""
        given = (labels[:, None] == np.arange(labels.max() + 1)).astype(float)
        scores = given.copy()
        for _ in range(400):
            scores = 0.99 * (self.normalised_graph @ scores) + 0.01 * given
        return np.asarray((scores / scores.sum(axis=0)).argmax(axis=1))

    def label_spreading(self, labels: np.ndarray) -> np.ndarray:
        """scikit-learn's LabelSpreading(kernel="knn"); its graph is that of kneighbors_graph."""
        graph = self.graph(itself=True)
        # The class takes a function for a kernel: the same matrix, computed once for all draws.
        model = LabelSpreading(kernel=lambda *_: graph, alpha=0.9, max_iter=1000, tol=1e-4)
        return np.asarray(model.fit(self.scaled, labels).transduction_)

    def poisson(self, labels: np.ndarray) -> np.ndarray:
        """Graphlearning's Poisson learning.

        Its conjugate gradients do not come to an end where the graph is in several parts; its
        gradient descent does.
        """
        import graphlearning

        known = np.flatnonzero(labels >= 0)
        parts, _ = csgraph.connected_components(self.poisson_weights, directed=False)
        solver = "conjugate_gradient" if parts == 1 else "gradient_descent"
        model = graphlearning.ssl.poisson(self.poisson_weights, solver=solver, max_iter=300)
        return np.asarray(model.fit_predict(known, labels[known]))

    def nearest_five(self, labels: np.ndarray) -> np.ndarray:
        """5-NN."""
        known = labels >= 0
        model = KNeighborsClassifier(min(5, int(known.sum())))
        return np.asarray(model.fit(self.scaled[known], labels[known]).predict(self.scaled))

    def logistic(self, labels: np.ndarray) -> np.ndarray:
        """Logistic regression."""
        known = labels >= 0
        model = LogisticRegression(max_iter=500).fit(self.standard[known], labels[known])
        return np.asarray(model.predict(self.standard))

    def boosting(self, labels: np.ndarray) -> np.ndarray:
        """Gradient boosting; small leaves, because there are few labels."""
        known = labels >= 0
        each = int(known.sum()) // (int(labels.max()) + 1)
        model = HistGradientBoostingClassifier(
            max_iter=50, min_samples_leaf=2 if each < 20 else 5, early_stopping=False
        )
        return np.asarray(model.fit(self.rows[known], labels[known]).predict(self.rows))


METHODS: dict[str, Callable[[Problem, np.ndarray], np.ndarray]] = {
    "biglp": Problem.biglp,
    "exact 10-NN graph": Problem.exact_graph,
    "LabelSpreading(knn)": Problem.label_spreading,
    "Poisson": Problem.poisson,
    "5-NN": Problem.nearest_five,
    "logistic regression": Problem.logistic,
    "gradient boosting": Problem.boosting,
}
