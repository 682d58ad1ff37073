"""Parameters once they are checked, as the steps of a fit take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from biglp._core import looked_up
from biglp._core.device import Device
from biglp._core.errors import ParameterError
from biglp._core.parameters import DEFAULTS, checked
from biglp._core.size import DEFAULT_EFFORT

DEFAULT_FACTOR = "anchors"


@dataclass(frozen=True)
class GraphSettings:
    """Checked parameters of the graph; the names are those of the estimator."""

    factor: str
    n_landmarks: int | None  # None: the factor chooses
    landmarks: Any
    bandwidth: float | None  # None: from the spacing of the landmarks
    scaling: str
    projected: bool  # whether wide rows may be projected on their principal directions
    directions: int | None  # to project on, 0 for none; None: as many as suit the rows
    device: str
    seed: int
    embedder: str | None = None  # a transform that follows the scaling, in place of a projection
    effort: str = DEFAULT_EFFORT
    factor_params: dict[str, Any] = field(default_factory=dict)
    gpu_memory: int | None = None  # bytes; None: a share of what is free
    precision: str = "float32"


@dataclass(frozen=True)
class AnswerSettings:
    """Checked parameters of the answer; the names are those of the estimator."""

    method: str
    alpha: float | None  # None: chosen by leave-one-out
    class_balance: Any  # a word, or an array of class priors
    solver: str
    max_iter: int
    tol: float
    clamp: bool  # whether labelled rows keep exactly the labels they were given
    seed: int
    effort: str = DEFAULT_EFFORT
    # The classes, by the values of their labels, with a description or a vector each, or None
    classes: dict[Any, Any] | None = None
    # Whether no more than a few α are tried: where one is given, and by a committee
    few_alphas: bool = field(init=False)
    balance: str = field(init=False)  # the class balance; "given" for priors

    def __post_init__(self) -> None:
        few = self.alpha is not None or self.method != "spreading"
        object.__setattr__(self, "few_alphas", few)
        word = self.class_balance if isinstance(self.class_balance, str) else "given"
        object.__setattr__(self, "balance", word)


@dataclass(frozen=True)
class Settings:
    """Checked parameters."""

    graph: GraphSettings
    answer: AnswerSettings
    memory: int  # budget of this machine, in bytes
    sklearn: bool = False  # whether the interface has loaded scikit-learn, as the estimators have

    place: Device = field(init=False)  # where the arithmetic runs

    def __post_init__(self) -> None:
        place = Device(self.graph.device, self.graph.gpu_memory, self.graph.precision)
        object.__setattr__(self, "place", place)

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], *, regression: bool = False, sklearn: bool = False
    ) -> Settings:
        """Check parameters, by the names of the estimators; defaults for those not given."""
        given = {**DEFAULTS, **parameters}
        value = {name: checked(name, given[name]) for name in DEFAULTS}
        factor = DEFAULT_FACTOR if value["factor"] == "auto" else value["factor"]
        Factor = looked_up("biglp._graph:FACTORS")[factor]
        method = value["filter"]
        if method == "auto":  # a committee unless a factor or a filter is named
            method = "committee" if value["factor"] == "auto" else "spreading"
        if method == "poisson":
            for name in ("alpha", "solver"):
                if not (isinstance(given[name], str) and given[name] == DEFAULTS[name]):
                    raise ParameterError(
                        f"{name}={given[name]!r} means nothing for filter='poisson'; leave it out, "
                        "or use filter='spreading'."
                    )
        if regression:
            method = "regression"
            if Factor.pairwise:
                raise ParameterError(
                    f"factor={factor!r} has no rows to regress on; use LowRankLabelPropagation "
                    "with classes, or another factor."
                )
        if value["classes"] is not None and value["class_vectors"] is not None:
            raise ParameterError("classes and class_vectors say the same; give one of them.")
        finer = value["factor_params"]
        if finer is not None and not isinstance(finer, Mapping):
            raise ParameterError(f"factor_params={finer!r} cannot be used; give a dict or None.")
        finer = dict(finer or {})
        unknown = set(finer) - set(Factor.params)
        if unknown:
            raise ParameterError(
                f"factor_params has {', '.join(sorted(map(repr, unknown)))}, which "
                f"factor={factor!r} does not know; allowed: "
                f"{', '.join(sorted(Factor.params)) or 'none'}."
            )
        finer = {name: Factor.params[name](name, v) for name, v in finer.items()}
        seed, effort = value["random_state"], value["effort"]
        directions, embedder = value["projection"]
        graph = GraphSettings(
            factor=factor,
            n_landmarks=value["n_landmarks"],
            landmarks=value["landmarks"],
            bandwidth=value["bandwidth"],
            scaling=value["scaling"],
            projected=method == "committee",
            directions=directions,
            device=value["device"],
            seed=seed,
            embedder=embedder,
            effort=effort,
            factor_params=finer,
            gpu_memory=value["gpu_memory"],
            precision=value["precision"],
        )
        answer = AnswerSettings(
            method=method,
            alpha=value["alpha"],
            class_balance=value["class_balance"],
            solver=value["solver"],
            max_iter=value["max_iter"],
            tol=value["tol"],
            clamp=value["clamp"] == "hard",
            seed=seed,
            effort=effort,
            classes=value["class_vectors"] or value["classes"],
        )
        return cls(graph, answer, value["memory"], sklearn)

    @classmethod
    def without_labels(cls, parameters: Mapping[str, Any], *, sklearn: bool = False) -> Settings:
        """Check the parameters of a graph that has no labels yet, so that priors mean nothing."""
        return cls.of({**parameters, "class_balance": "auto"}, sklearn=sklearn)
