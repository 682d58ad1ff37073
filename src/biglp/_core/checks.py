"""Checks of single parameters; each names the parameter, the value found and what is allowed."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Check a name."""
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name}={value!r} is not known; use one of {', '.join(allowed)}.")
    return value


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


NEAREST_TO_ONE = 1e-10
"""The algebra loses as many digits as 1 − α has zeros, of about 16."""


def fraction(name: str, value: Any, also: str = "") -> float:
    """Check a number between 0 and 1, both excluded, from which 1 can be told."""
    if not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ParameterError(
            f"{name}={value!r} is outside (0, 1); use {also}a number between 0 and 1, "
            "both excluded (0.99 spreads far, 0.01 hardly at all)."
        )
    if 1.0 - float(value) < NEAREST_TO_ONE:
        raise ParameterError(
            f"{name}={value!r} is 1 but for rounding, and nothing could be solved; use {also}a "
            "number up to 0.999999999 (0.99 spreads far)."
        )
    return float(value)


def not_negative_integer(name: str, value: Any) -> int:
    """Check an integer of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < 0:
        raise ParameterError(f"{name}={value!r} cannot be used; give an integer of 0 or more.")
    return int(value)


def not_negative(name: str, value: Any) -> float:
    """Check a finite number of 0 or more."""
    if not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
        raise ParameterError(f"{name}={value!r} cannot be used; give a finite number of 0 or more.")
    return float(value)


def probability(name: str, value: Any) -> float:
    """Check a number from 0 to 1."""
    if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise ParameterError(f"{name}={value!r} cannot be used; give a number from 0 to 1.")
    return float(value)


def true_or_false(name: str, value: Any) -> bool:
    """Check a switch."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name}={value!r} cannot be used; give True or False.")
    return value


def anything(name: str, value: Any) -> Any:
    """Take a value as it is; whoever uses it checks it."""
    return value


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to biglp."""
    return isinstance(value, str) and value == "auto"


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
