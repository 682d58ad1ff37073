"""Parameters once they are checked, as the steps of a fit take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from biglp._core.device import Place
from biglp._core.effort import DEFAULT_EFFORT
from biglp._core.errors import ParameterError
from biglp._core.parameters import ESTIMATOR, PARAMETERS, checked, defaults, looked_up

DEFAULTS: dict[str, Any] = defaults(ESTIMATOR)
"""The defaults of every parameter. scikit-learn wants them in the estimators' signatures as well;
a test keeps the two alike."""
DEFAULT_FACTOR = "anchors"


@dataclass(frozen=True)
class GraphSettings:
    """Checked parameters of the graph; the names are those of the estimator.

    Attributes
    ----------
    factor : str
        A registered factor.
    n_landmarks : int or None
        None: the factor chooses.
    landmarks : str or array
    bandwidth : float or None
        None: from the spacing of the landmarks.
    scaling : str
    projected : bool
        Whether wide rows may be projected on their principal directions.
    directions : int or None
        Directions that rows are projected on, 0 for none; None: as many as suits them.
    device : str
    seed : int
    effort : str
        One of :data:`biglp._core.effort.EFFORTS`.
    factor_params : dict
    gpu_memory : int or None
        Bytes of a card's memory that may be taken; None: a share of what is free.
    precision : str
        Digits of products on a card.
    """

    factor: str
    n_landmarks: int | None
    landmarks: Any
    bandwidth: float | None
    scaling: str
    projected: bool
    directions: int | None
    device: str
    seed: int
    effort: str = DEFAULT_EFFORT
    factor_params: dict[str, Any] = field(default_factory=dict)
    gpu_memory: int | None = None
    precision: str = "float32"


@dataclass(frozen=True)
class AnswerSettings:
    """Checked parameters of the answer; the names are those of the estimator.

    Attributes
    ----------
    method : str
        A registered method.
    alpha : float or None
        None: chosen by leave-one-out.
    class_balance : str or array of class priors
    solver : {"closed_form", "iterative"}
    max_iter, tol : int, float
        Of the iterative solver.
    clamp : bool
        Whether labelled rows keep exactly the labels they were given.
    seed : int
    effort : str
        One of :data:`biglp._core.effort.EFFORTS`.
    """

    method: str
    alpha: float | None
    class_balance: Any
    solver: str
    max_iter: int
    tol: float
    clamp: bool
    seed: int
    effort: str = DEFAULT_EFFORT

    @property
    def few_alphas(self) -> bool:
        """Whether no more than a few α are tried: where one is given, and by a committee."""
        return self.alpha is not None or self.method != "spreading"

    def balances(self, *names: str) -> bool:
        """Whether the class balance is one of some names."""
        return isinstance(self.class_balance, str) and self.class_balance in names


@dataclass(frozen=True)
class Settings:
    """Checked parameters.

    Attributes
    ----------
    graph : GraphSettings
    answer : AnswerSettings
    memory : int
        Budget of this machine, in bytes.
    sklearn : bool
        Whether the interface has loaded scikit-learn, as the estimators have.
    """

    graph: GraphSettings
    answer: AnswerSettings
    memory: int
    sklearn: bool = False

    @property
    def place(self) -> Place:
        """Where the arithmetic runs."""
        return Place(self.graph.device, self.graph.gpu_memory, self.graph.precision)

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], *, regression: bool = False, sklearn: bool = False
    ) -> Settings:
        """Check parameters, by the names of the estimators; defaults for those not given.

        Raises
        ------
        ParameterError
            Naming the parameter, the value found and the values allowed.
        """
        given = {name: parameters.get(name, default) for name, default in DEFAULTS.items()}
        value = {name: checked(name, given[name]) for name in ESTIMATOR}
        factor = DEFAULT_FACTOR if value["factor"] == "auto" else value["factor"]
        Factor = looked_up("biglp._lowrank:FACTORS")[factor]
        method = value["filter"]
        if method == "auto":  # a committee unless a factor or a filter is named
            method = "committee" if value["factor"] == "auto" else "spreading"
        if method == "poisson":
            for name in ("alpha", "solver"):
                default = PARAMETERS[name].default
                if not (isinstance(given[name], str) and given[name] == default):
                    raise ParameterError(
                        f"{name}={given[name]!r} means nothing for filter='poisson'; leave it out, "
                        "or use filter='spreading'."
                    )
        if regression:
            method = "regression"
            if Factor.is_graph:
                raise ParameterError(
                    f"factor={factor!r} has no rows to regress on; use LowRankLabelPropagation "
                    "with classes, or another factor."
                )
        unknown = set(value["factor_params"]) - set(Factor.params)
        if unknown:
            raise ParameterError(
                f"factor_params has {', '.join(sorted(map(repr, unknown)))}, which "
                f"factor={factor!r} does not know; allowed: "
                f"{', '.join(sorted(Factor.params)) or 'none'}."
            )
        finer = {name: Factor.params[name](name, v) for name, v in value["factor_params"].items()}
        seed, effort = value["random_state"], value["effort"]
        graph = GraphSettings(
            factor=factor,
            **{name: value[name] for name in ("n_landmarks", "landmarks", "bandwidth", "scaling")},
            projected=method == "committee",
            directions=value["projection"],
            **{name: value[name] for name in ("device", "gpu_memory", "precision")},
            seed=seed,
            effort=effort,
            factor_params=finer,
        )
        answer = AnswerSettings(
            method=method,
            **{name: value[name] for name in ("alpha", "class_balance", "solver")},
            **{name: value[name] for name in ("max_iter", "tol")},
            clamp=value["clamp"] == "hard",
            seed=seed,
            effort=effort,
        )
        return cls(graph, answer, value["memory"], sklearn)

    @classmethod
    def without_labels(cls, parameters: Mapping[str, Any], *, sklearn: bool = False) -> Settings:
        """Check the parameters of a graph that has no labels yet, so that priors mean nothing."""
        return cls.of({**parameters, "class_balance": "auto"}, sklearn=sklearn)
