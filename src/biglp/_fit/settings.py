"""The estimator's parameters, checked once and turned into what the steps of a fit need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from biglp._answers import METHODS
from biglp._answers.base import AnswerSettings
from biglp._core.checks import (
    fraction,
    is_auto,
    one_of,
    positive,
    positive_integer,
    seed_from,
)
from biglp._core.effort import DEFAULT_EFFORT, EFFORTS
from biglp._core.errors import ParameterError
from biglp._core.memory import parse_memory
from biglp._core.place import Place
from biglp._lowrank import FACTORS
from biglp._lowrank.settings import GraphSettings
from biglp._transforms import SCALINGS, TRANSFORMS
from biglp._transforms.base import OWN

DEFAULTS: dict[str, Any] = {
    "factor": "auto",
    "n_landmarks": "auto",
    "landmarks": "kmeans",
    "bandwidth": "auto",
    "alpha": "auto",
    "class_balance": "auto",
    "filter": "auto",
    "clamp": "soft",
    "scaling": "auto",
    "projection": "auto",
    "effort": DEFAULT_EFFORT,
    "solver": "closed_form",
    "max_iter": 10_000,
    "tol": 1e-7,
    "device": "cpu",
    "gpu_memory": "auto",
    "precision": "float32",
    "memory": "auto",
    "factor_params": None,
    "random_state": None,
}
"""The defaults of every parameter. scikit-learn wants them in the estimators' signatures as well;
a test keeps the two alike."""
DEFAULT_FACTOR = "anchors"
SOLVERS = ("closed_form", "iterative")
CLAMPS = ("soft", "hard")
BALANCES = ("auto", "mass", "share", "centre", "none")
NOT_FILTERS = ("committee", "regression")
"""Methods that ``filter`` does not choose: one is its default, the other has targets."""


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
        get = {**DEFAULTS, **parameters}
        factor = one_of("factor", get["factor"], ("auto", *FACTORS))
        method = "regression" if regression else _method(factor, get)
        factor = DEFAULT_FACTOR if factor == "auto" else factor
        if regression and FACTORS[factor].is_graph:
            raise ParameterError(
                f"factor={factor!r} has no rows to regress on; use LowRankLabelPropagation with "
                "classes, or another factor."
            )
        k, bandwidth, alpha = get["n_landmarks"], get["bandwidth"], get["alpha"]
        seed = seed_from(get["random_state"])
        effort = one_of("effort", get["effort"], tuple(EFFORTS))
        directions, embedder = _projection(get["projection"])
        place = Place.of(get["device"], get["gpu_memory"], get["precision"])
        graph = GraphSettings(
            factor=factor,
            n_landmarks=None if is_auto(k) else positive_integer("n_landmarks", k),
            landmarks=get["landmarks"],
            bandwidth=None if is_auto(bandwidth) else positive("bandwidth", bandwidth),
            scaling=one_of("scaling", get["scaling"], SCALINGS),
            projected=method == "committee",
            directions=directions,
            device=place.device,
            seed=seed,
            embedder=embedder,
            effort=effort,
            factor_params=_factor_params(factor, get["factor_params"]),
            gpu_memory=place.gpu_memory,
            precision=place.precision,
        )
        balance = get["class_balance"]  # priors are checked once the number of classes is known
        answer = AnswerSettings(
            method=method,
            alpha=None if is_auto(alpha) else fraction("alpha", alpha, "'auto' or "),
            class_balance=(
                one_of("class_balance", balance, BALANCES) if isinstance(balance, str) else balance
            ),
            solver=one_of("solver", get["solver"], SOLVERS),
            max_iter=positive_integer("max_iter", get["max_iter"]),
            tol=positive("tol", get["tol"]),
            clamp=one_of("clamp", get["clamp"], CLAMPS) == "hard",
            seed=seed,
            effort=effort,
        )
        return cls(graph, answer, parse_memory(get["memory"]), sklearn)

    @classmethod
    def without_labels(cls, parameters: Mapping[str, Any], *, sklearn: bool = False) -> Settings:
        """Check the parameters of a graph that has no labels yet, so that priors mean nothing."""
        return cls.of({**parameters, "class_balance": "auto"}, sklearn=sklearn)


def _method(factor: str, get: Mapping[str, Any]) -> str:
    """The method: a committee unless a factor or a filter is named."""
    filters = ("auto", *(name for name in METHODS if name not in NOT_FILTERS))
    chosen = one_of("filter", get["filter"], filters)
    if chosen == "auto":
        return "committee" if factor == "auto" else "spreading"
    if chosen == "poisson":
        for name, only in (("alpha", "auto"), ("solver", "closed_form")):
            if not (isinstance(get[name], str) and get[name] == only):
                raise ParameterError(
                    f"{name}={get[name]!r} means nothing for filter='poisson'; leave it out, or "
                    "use filter='spreading'."
                )
    return chosen


def _projection(projection: Any) -> tuple[int | None, str | None]:
    """Number of directions (None is "auto", 0 is "none"), and the transform that is named."""
    if is_auto(projection):
        return None, None
    if isinstance(projection, str) and projection == "none":
        return 0, None
    embedders = [name for name in TRANSFORMS if name not in OWN]
    if isinstance(projection, str) and projection in embedders:
        return None, projection
    try:
        return positive_integer("projection", projection), None
    except ParameterError:
        known = "".join(f"{name!r}, " for name in ("auto", *embedders))
        raise ParameterError(
            f"projection={projection!r} cannot be used; give {known}'none' or a number of "
            "directions, an integer of 1 or more."
        ) from None


def _factor_params(factor: str, params: Any) -> dict[str, Any]:
    if params is not None and not isinstance(params, Mapping):
        raise ParameterError(f"factor_params={params!r} cannot be used; give a dict or None.")
    known = FACTORS[factor].params
    unknown = set(params or {}) - set(known)
    if unknown:
        raise ParameterError(
            f"factor_params has {', '.join(sorted(map(repr, unknown)))}, which factor={factor!r} "
            f"does not know; allowed: {', '.join(sorted(known)) or 'none'}."
        )
    return {name: known[name](name, value) for name, value in (params or {}).items()}
