"""The scikit-learn estimators."""

from __future__ import annotations

from biglp.estimators.classifier import LowRankLabelPropagation
from biglp.estimators.regressor import LowRankLabelPropagationRegressor

__all__ = ["LowRankLabelPropagation", "LowRankLabelPropagationRegressor"]
