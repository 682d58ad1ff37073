"""One graph with many sets of labels gives the answers of separate fits."""

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from helpers import blobs
from paper.tables import transductions


@pytest.mark.filterwarnings("ignore::biglp._core.errors.DegreeWarning")  # centred features
@pytest.mark.parametrize("method", ["nystrom-kmeans", "nystrom-random", "linear", "glnp-apgd"])
def test_shared_graph_gives_the_labels_of_separate_fits(method):
    X, y, _ = blobs(n=150, classes=2, labelled=12)
    X = np.abs(X)
    other = np.where(np.arange(150) % 7 == 0, np.arange(150) % 2, -1)
    estimator = LowRankLabelPropagation.paper(method, k=8, random_state=3, engine="serial")
    if method == "glnp-apgd":
        estimator.factor_params = {"start": "uniform", "max_iter": 250}
    shared = list(transductions(estimator, X, [y, other]))
    for labels, answer in zip((y, other), shared, strict=True):
        np.testing.assert_array_equal(answer, estimator.fit(X, labels).transduction_)
