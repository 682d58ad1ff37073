"""The scikit-learn estimators, and how to cross-validate them."""

from __future__ import annotations

from biglp.estimators.classifier import LowRankLabelPropagation
from biglp.estimators.regressor import LowRankLabelPropagationRegressor
from biglp.estimators.splitting import SemiSupervisedKFold

__all__ = ["LowRankLabelPropagation", "LowRankLabelPropagationRegressor", "SemiSupervisedKFold"]
