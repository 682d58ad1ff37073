"""scikit-learn's own checks, on the estimator and on the baselines."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from paper.baselines import DensePropagation, NearestNeighbours

WEIGHTS_ARE_OF_LABELS = (
    "it repeats rows and labels; here a weight repeats a label, and the graph, its landmarks and "
    "the scaling are those of the rows as they are (tests/doors/test_soft_labels.py has the rule)"
)
EXPECTED_FAILURES = {
    "check_classifiers_classes": (
        "its y holds the classes -1 and 1, and here -1 marks unlabelled rows, as it does in "
        "scikit-learn's own LabelSpreading"
    ),
    "check_dtype_object": (
        "it wants a TypeError for a dict among the values; here every unusable row is a "
        "BadRowsError, a ValueError that names the value and says what to do"
    ),
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_OF_LABELS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_OF_LABELS,
}
"""Every check that is not passed, with its reason. scikit-learn itself skips check_array_api_input
where SCIPY_ARRAY_API is not set."""


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@parametrize_with_checks(
    [
        LowRankLabelPropagation(),
        LowRankLabelPropagation(factor="nystrom", solver="iterative"),
        LowRankLabelPropagationRegressor(),
        DensePropagation(),
        NearestNeighbours(),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
