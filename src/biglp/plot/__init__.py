"""Plots of fitted estimators, as scikit-learn's displays are made; they need matplotlib.

>>> from biglp.plot import MapDisplay
>>> display = MapDisplay.from_estimator(model)          # doctest: +SKIP
>>> display.figure_.savefig("map.png")                  # doctest: +SKIP
"""

from biglp.plot.displays import LearningCurveDisplay, MapDisplay, MembersDisplay, ReliabilityDisplay

__all__ = ["LearningCurveDisplay", "MapDisplay", "MembersDisplay", "ReliabilityDisplay"]
