"""Plots of fitted estimators, as scikit-learn's displays are made; they need matplotlib.

>>> from biglp.plot import MapDisplay
>>> display = MapDisplay.from_estimator(model)          # doctest: +SKIP
>>> display.figure_.savefig("map.png")                  # doctest: +SKIP
"""

from biglp.plot.learning import LearningCurveDisplay
from biglp.plot.map import MapDisplay
from biglp.plot.members import MembersDisplay
from biglp.plot.reliability import ReliabilityDisplay

__all__ = ["LearningCurveDisplay", "MapDisplay", "MembersDisplay", "ReliabilityDisplay"]
