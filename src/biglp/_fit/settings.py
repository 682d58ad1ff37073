"""The estimator's parameters, checked once and turned into what the steps of ``fit`` need."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biglp._core.arrays import require_device
from biglp._core.errors import ParameterError
from biglp._core.memory import parse_memory

FACTOR_NAMES = ("auto", "anchors", "nystrom", "glnp", "glnp-mu", "linear")
SOLVERS = ("closed_form", "iterative")
CLAMPS = ("soft", "hard")
BALANCES = ("auto", "mass", "share", "centre", "none")
FILTERS = ("auto", "spreading", "poisson")
NOT_IN_REGRESSION = {
    "class_balance": "none",
    "clamp": "soft",
    "filter": "auto",
    "solver": "closed_form",
    "max_iter": 1,
    "tol": 1.0,
}
FACTOR_PARAMS = {
    "anchors": {"n_nearest", "bandwidth_factor"},
    "nystrom": {"bandwidth_factor"},
    "glnp": {"start", "max_iter", "tol"},
    "glnp-mu": {"start", "max_iter", "tol"},
    "linear": {"shift"},
}


@dataclass(frozen=True)
class Settings:
    """Checked parameters; the names are those of the estimator."""

    factor: str
    n_landmarks: int | None
    landmarks: Any
    bandwidth: float | None
    alpha: float | None
    class_balance: Any
    scaling: str
    solver: str
    max_iter: int
    tol: float
    device: str
    memory: int
    seed: int
    factor_params: dict[str, Any] = field(default_factory=dict)
    committee: bool = False
    filter: str = "auto"
    clamp: bool = False
    """Whether labelled rows keep exactly the labels they were given."""
    remembered: int = 0
    """Bytes for features that are remembered between sweeps; half of the memory by default."""

    @classmethod
    def of_regression(cls, estimator: Any) -> Settings:
        """Check the parameters of a regressor, which has none about classes and solvers."""
        return cls.of(estimator, **NOT_IN_REGRESSION)

    @classmethod
    def of(cls, estimator: Any, **fixed: Any) -> Settings:
        """Check the parameters of an estimator, and others that are fixed.

        Raises
        ------
        ParameterError
            Naming the parameter, the value found and the values allowed.
        """
        get = {**fixed, **estimator.get_params(deep=False)}
        memory = parse_memory(get["memory"])
        factor = one_of("factor", get["factor"], FACTOR_NAMES)
        chosen = one_of("filter", get["filter"], FILTERS)
        committee = factor == "auto" and chosen == "auto"
        factor = "anchors" if factor == "auto" else factor
        if chosen == "poisson":
            _refuse_with_poisson(get)
        return cls(
            factor=factor,
            n_landmarks=_auto_or_integer("n_landmarks", get["n_landmarks"]),
            landmarks=get["landmarks"],
            bandwidth=auto_or_positive("bandwidth", get["bandwidth"]),
            alpha=_auto_or_fraction("alpha", get["alpha"]),
            class_balance=_balance(get["class_balance"]),
            scaling=get["scaling"],
            solver=one_of("solver", get["solver"], SOLVERS),
            max_iter=positive_integer("max_iter", get["max_iter"]),
            tol=positive("tol", get["tol"]),
            device=require_device(get["device"]),
            memory=memory,
            seed=seed_from(get["random_state"]),
            factor_params=_factor_params(factor, get["factor_params"]),
            committee=committee,
            filter=chosen,
            clamp=one_of("clamp", get["clamp"], CLAMPS) == "hard",
            remembered=memory // 2,
        )


def seed_from(random_state: Any) -> int:
    """Turn None, an integer or a RandomState/Generator into one seed."""
    if random_state is None:
        return 0  # the same answer every time, unless another seed is asked for
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise ParameterError(
        f"random_state={random_state!r} cannot be used; give None, an integer of 0 or more, "
        "a RandomState or a Generator."
    )


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Check a name."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name}={value!r} is not known; use one of {', '.join(allowed)}.")
    return value


def _auto_or_integer(name: str, value: Any) -> int | None:
    return None if isinstance(value, str) and value == "auto" else positive_integer(name, value)


def auto_or_positive(name: str, value: Any) -> float | None:
    """Check a finite number above 0; None for "auto"."""
    return None if isinstance(value, str) and value == "auto" else positive(name, value)


def _auto_or_fraction(name: str, value: Any) -> float | None:
    if isinstance(value, str) and value == "auto":
        return None
    return fraction(name, value, "'auto' or ")


def fraction(name: str, value: Any, also: str = "") -> float:
    """Check a number between 0 and 1, both excluded."""
    if not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ParameterError(
            f"{name}={value!r} is outside (0, 1); use {also}a number between 0 and 1, "
            "both excluded (0.99 spreads far, 0.01 hardly at all)."
        )
    return float(value)


def positive_integer(name: str, value: Any) -> int:
    """Check an integer of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < 1:
        raise ParameterError(f"{name}={value!r} cannot be used; give an integer of 1 or more.")
    return int(value)


def positive(name: str, value: Any) -> float:
    """Check a finite number above 0."""
    if not isinstance(value, numbers.Real) or not 0 < float(value) < np.inf:
        raise ParameterError(f"{name}={value!r} cannot be used; give a finite number above 0.")
    return float(value)


def _refuse_with_poisson(get: Mapping[str, Any]) -> None:
    """Refuse parameters that Poisson learning has no use for."""
    for name, only in (("alpha", "auto"), ("solver", "closed_form")):
        if not (isinstance(get[name], str) and get[name] == only):
            raise ParameterError(
                f"{name}={get[name]!r} means nothing for filter='poisson'; leave it out, or use "
                "filter='spreading'."
            )


def _balance(value: Any) -> Any:
    if isinstance(value, str):
        return one_of("class_balance", value, BALANCES)
    return value  # priors are checked once the number of classes is known


def _factor_params(factor: str, params: Any) -> dict[str, Any]:
    if params is not None and not isinstance(params, Mapping):
        raise ParameterError(f"factor_params={params!r} cannot be used; give a dict or None.")
    params = dict(params or {})
    unknown = set(params) - FACTOR_PARAMS[factor]
    if unknown:
        allowed = ", ".join(sorted(FACTOR_PARAMS[factor])) or "none"
        raise ParameterError(
            f"factor_params has {', '.join(sorted(map(repr, unknown)))}, which factor={factor!r} "
            f"does not know; allowed: {allowed}."
        )
    if "n_nearest" in params:
        params["n_nearest"] = positive_integer("n_nearest", params["n_nearest"])
    if "bandwidth_factor" in params:
        params["bandwidth_factor"] = positive("bandwidth_factor", params["bandwidth_factor"])
    if not isinstance(params.get("shift", True), bool):
        raise ParameterError(f"shift={params['shift']!r} cannot be used; give True or False.")
    return params
