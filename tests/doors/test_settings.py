"""Parameters: their defaults, and that they are checked once, together."""

import dataclasses
import inspect

import numpy as np
import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import LandmarkWarning, MemoryBudgetError, ParameterError
from biglp._core.parameters import DEFAULTS, PARAMETERS
from biglp._core.settings import DEFAULT_FACTOR, Settings
from biglp._jobs import CheckJob, FitJob, PredictJob, SuggestJob
from biglp._rows import ReadOptions
from helpers import blobs, fit_quietly, model, settings_of

NOT_FOR_NUMBERS = {"class_balance", "filter", "clamp", "solver", "max_iter", "tol"}
"""Parameters of the classifier that the regressor does not have."""


def test_a_filter_by_name_asks_no_committee():
    X, y, _ = blobs()
    settings = {"n_landmarks": 20, "engine": "serial", "random_state": 0}
    by_name = LowRankLabelPropagation(filter="spreading", **settings).fit(X, y)
    anchor = LowRankLabelPropagation(factor="anchors", **settings).fit(X, y)
    np.testing.assert_array_equal(by_name.label_distributions_, anchor.label_distributions_)
    assert "members" in LowRankLabelPropagation(**settings).fit(X, y).report_


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter": "heat"}, r"filter='heat' is not known; use one of auto, spreading, poisson"),
        ({"filter": "poisson", "alpha": 0.9}, r"alpha=0\.9 means nothing for filter='poisson'"),
        ({"filter": "poisson", "solver": "iterative"}, r"solver='iterative' means nothing"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(changes, message):
    X, y, _ = blobs()
    with pytest.raises(ParameterError, match=message):
        LowRankLabelPropagation(engine="serial", **changes).fit(X, y)


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "values", "message"),
        [
            ("alpha", (0, 1, -0.1, 1.5, np.nan, "0.5", None, True), r"alpha=.* outside \(0, 1\)"),
            ("factor", ("nyström", None, 3), r"factor=.* not known; use one of auto, anchors"),
            ("solver", ("cg", None), r"solver=.* use one of closed_form, iterative"),
            (
                "class_balance",
                ("equal",),
                r"class_balance='equal' .* auto, mass, share, centre, none",
            ),
            ("n_landmarks", (0, -3, 2.5, "many", True), r"n_landmarks=.* integer of 1 or more"),
            ("bandwidth", (0, -1.0, np.inf, np.nan, "wide"), r"bandwidth=.* number above 0"),
            ("bandwidth", (1e-30, 1e200), r"bandwidth=1e[-+]\d+ is outside \["),
            ("scaling", ("robust", None), r"scaling=.* not known; use one of auto, none"),
            (
                "projection",
                (0, -1, 2.5, None, "few", True),
                r"projection=.* 'auto', 'none' or a num",
            ),
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
    def test_values_outside_their_range(self, name, values, message):
        X, y, _ = blobs()
        for value in values:
            with pytest.raises(ParameterError, match=message):
                model(**{name: value}).fit(X, y)

    @pytest.mark.parametrize("factor", ["anchors", "nystrom", "glnp"])
    def test_more_landmarks_than_rows(self, factor):
        X, y, _ = blobs(n=30, labelled=9)
        with pytest.warns(LandmarkWarning, match=r"n_landmarks=50 is more than the 30 rows"):
            fitted = model(factor=factor, n_landmarks=50).fit(X, y)
        assert np.isfinite(fitted.label_distributions_).all()

    @pytest.mark.parametrize("factor", ["anchors", "nystrom"])
    def test_one_landmark(self, factor):
        X, y, _ = blobs()
        fitted = fit_quietly(model(factor=factor, n_landmarks=1), X, y)
        assert (fitted.transduction_ == y)[y >= 0].all()

    def test_a_rank_too_large_for_the_budget(self):
        X, y, _ = blobs()
        with pytest.raises(MemoryBudgetError, match=r"1 MB is too little .* 200 landmarks"):
            model(n_landmarks=200, memory="1MB").fit(X, y)


class TestDefaults:
    @pytest.mark.parametrize(
        "estimator", [LowRankLabelPropagation, LowRankLabelPropagationRegressor]
    )
    def test_those_of_the_signatures_are_those_of_the_table(self, estimator):
        signature = inspect.signature(estimator).parameters
        defaults = {name: parameter.default for name, parameter in signature.items()}
        assert defaults.pop("verbose") is False
        assert defaults.pop("random_state") is None  # which is 0, as scikit-learn spells it
        assert defaults == {name: PARAMETERS[name].default for name in defaults}
        assert set(DEFAULTS) - set(defaults) <= NOT_FOR_NUMBERS | {"random_state"}
        if estimator is LowRankLabelPropagation:
            assert set(DEFAULTS) - set(defaults) == {"random_state"}

    @pytest.mark.parametrize("options", [ReadOptions, FitJob, CheckJob, PredictJob, SuggestJob])
    def test_those_of_options_and_jobs_are_those_of_the_table(self, options):
        known = [field for field in dataclasses.fields(options) if field.name in PARAMETERS]
        assert len(known) > 8
        for field in known:
            if field.name != "cache" and field.default is not dataclasses.MISSING:
                assert (field.default or None) == (PARAMETERS[field.name].default or None)

    def test_words_of_an_option_are_those_that_are_taken(self):
        """Registries that take a while to load are not asked for a help text."""
        for name, parameter in PARAMETERS.items():
            if parameter.choices and parameter.metavar:
                shown = [word for word in parameter.metavar.split("|") if word.islower()]
                assert shown == list(parameter.words), name

    def test_no_parameter_at_all_is_every_default(self):
        plain, named = Settings.of({}), settings_of(LowRankLabelPropagation())
        assert (plain.graph, plain.answer) == (named.graph, named.answer)
        assert plain.graph.factor == DEFAULT_FACTOR
        assert plain.answer.method == "committee"

    @pytest.mark.parametrize(
        ("parameters", "method"),
        [
            ({}, "committee"),
            ({"factor": "auto", "filter": "spreading"}, "spreading"),
            ({"factor": "anchors"}, "spreading"),
            ({"factor": "linear", "filter": "poisson"}, "poisson"),
        ],
    )
    def test_the_method_follows_from_factor_and_filter(self, parameters, method):
        settings = Settings.of(parameters)
        assert settings.answer.method == method
        assert settings.graph.projected == (method == "committee")
        assert Settings.of(parameters, regression=True).answer.method == "regression"
