"""scikit-learn's own checks, on the estimator and on the baselines."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from biglp import LowRankLabelPropagation
from biglp.baselines import DensePropagation, NearestNeighbours

MINUS_ONE = "y holds the classes -1 and 1, and -1 marks unlabelled rows, as in scikit-learn's own LabelSpreading"  # noqa: E501
OBJECTS = "raises BadRowsError, a ValueError that says what to do, where the check wants a TypeError"

EXPECTED_FAILURES = {
    "check_classifiers_classes": MINUS_ONE,
    "check_dtype_object": OBJECTS,
}


def expected_failures(estimator):
    """Return every check that is not passed, with its reason."""
    return EXPECTED_FAILURES


@parametrize_with_checks(
    [
        LowRankLabelPropagation(),
        LowRankLabelPropagation(factor="anchors"),
        LowRankLabelPropagation(factor="nystrom"),
        LowRankLabelPropagation(factor="linear"),
        LowRankLabelPropagation(factor="glnp"),
        LowRankLabelPropagation(solver="iterative"),
        DensePropagation(),
        DensePropagation(kernel="linear", solver="iterative"),
        NearestNeighbours(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
