"""Parameters: their defaults, and that they are checked once, together."""

import dataclasses
import inspect

import numpy as np
import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import PARAMETERS, LandmarkWarning, ParameterError
from biglp._jobs import CheckJob, FitJob, PredictJob, SuggestJob
from biglp._rows import ReadOptions
from biglp.cli.fit import fit
from helpers import blobs, fit_quietly, model


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("alpha", (0, 1, -0.1, 1.5, np.nan, "0.5", None, True), r"alpha=.* outside \(0, 1\)"),
        ("factor", ("nyström", None, 3), r"factor=.* not known; use one of auto, anchors"),
        ("filter", ("heat",), r"filter='heat' is not known; use one of auto, spreading, poisson"),
        ("solver", ("cg", None), r"solver=.* use one of closed_form, iterative"),
        ("class_balance", ("equal",), r"class_balance='equal' .* auto, mass, share, centre, none"),
        ("n_landmarks", (0, -3, 2.5, "many", True), r"n_landmarks=.* integer of 1 or more"),
        ("bandwidth", (0, -1.0, np.inf, np.nan, "wide"), r"bandwidth=.* number above 0"),
        ("bandwidth", (1e-30, 1e200), r"bandwidth=1e[-+]\d+ is outside \["),
        ("scaling", ("robust", None), r"scaling=.* not known; use one of auto, none"),
        ("projection", (0, -1, 2.5, None, "few", True), r"projection=.* 'auto', 'none' or a num"),
        ("effort", ("low", None, 3), r"effort=.* use one of fast, balanced, best"),
        ("max_iter", (0, 1.5, None), r"max_iter=.* integer of 1 or more"),
        ("tol", (0, -1, "small"), r"tol=.* number above 0"),
        ("landmarks", ("grid",), r"landmarks='grid' is not known; use one of kmeans"),
        ("memory", ("plenty", "-1GB", 0), r"memory=.* not an amount of memory; use 'auto'"),
        ("device", ("gpu", None, 3), r"device=.* not known; use 'cpu', 'cuda'"),
        ("engine", ("spark", None), r"engine=.* not known; use 'serial', 'threads'"),
        ("random_state", (-1, "seed", 1.5), r"random_state=.* integer of 0 or more"),
        ("factor_params", ({"nearest": 3},), r"'nearest', which .* allowed: .*n_nearest"),
        ("factor_params", ("n_nearest",), r"factor_params='n_nearest' .* dict"),
        ("factor_params", ({"n_nearest": 0},), r"n_nearest=0 .* integer of 1 or more"),
    ],
)
def test_values_outside_their_range(name, values, message):
    X, y, _ = blobs()
    for value in values:
        with pytest.raises(ParameterError, match=message):
            model(**{name: value}).fit(X, y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 0.9}, r"alpha=0\.9 means nothing for filter='poisson'"),
        ({"solver": "iterative"}, r"solver='iterative' means nothing"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(changes, message):
    X, y, _ = blobs()
    with pytest.raises(ParameterError, match=message):
        LowRankLabelPropagation(engine="serial", filter="poisson", **changes).fit(X, y)


@pytest.mark.parametrize("factor", ["anchors", "nystrom", "glnp"])
def test_more_landmarks_than_rows_and_one(factor):
    X, y, _ = blobs(n=30, labelled=9)
    with pytest.warns(LandmarkWarning, match=r"n_landmarks=50 is more than the 30 rows"):
        fitted = model(factor=factor, n_landmarks=50).fit(X, y)
    assert np.isfinite(fitted.label_distributions_).all()
    fitted = fit_quietly(model(factor=factor, n_landmarks=1), X, y)
    assert factor == "glnp" or (fitted.transduction_ == y)[y >= 0].all()


@pytest.mark.parametrize(
    "taker",
    [LowRankLabelPropagation, LowRankLabelPropagationRegressor, fit],
    ids=lambda taker: taker.__name__,
)
def test_defaults_of_signatures_are_those_of_the_table(taker):
    taken = {name: each.default for name, each in inspect.signature(taker).parameters.items()}
    shared = set(taken) & set(PARAMETERS) - {"random_state"}  # None is 0, as scikit-learn has it
    assert {name: taken[name] for name in shared} == {
        name: PARAMETERS[name].default for name in shared
    }
    if taker is not fit:
        assert set(taken) - set(PARAMETERS) <= {"verbose", "random_state"}


@pytest.mark.parametrize("options", [ReadOptions, FitJob, CheckJob, PredictJob, SuggestJob])
def test_defaults_of_options_and_jobs_are_those_of_the_table(options):
    known = [field for field in dataclasses.fields(options) if field.name in PARAMETERS]
    assert len(known) > 8
    for field in known:
        if field.name != "cache" and field.default is not dataclasses.MISSING:
            assert (field.default or None) == (PARAMETERS[field.name].default or None)
