"""Problems at random, for hypothesis: shared by the tests and the campaign."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

problems = st.fixed_dictionaries(
    {
        "n": st.integers(20, 200),
        "classes": st.integers(2, 4),
        "features": st.integers(4, 7),
        "seed": st.integers(0, 1000),
        "dtype": st.sampled_from(["float32", "float64"]),
        "spread": st.sampled_from([0.3, 1.0]),
    }
)
"""Arguments of :func:`helpers.blobs`."""

STORAGE = {
    "array": np.asarray,
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
}
DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool")
_ODD = (float("nan"), float("inf"), "auto", True, None, "x", 5e-324, 2**63)
odd_numbers = st.sampled_from([0, 1, -1, 0.5, 0.99, 1 - 1e-16, 1e-7, 1e-300, 1e300, *_ODD])
parameters = st.fixed_dictionaries(
    {},
    optional={
        "factor": st.sampled_from(["anchors", "nystrom", "linear", "glnp", "glnp-mu"]),
        "n_landmarks": st.one_of(st.integers(1, 40), odd_numbers),
        "landmarks": st.sampled_from(["kmeans", "random", "kmeans-full", "x"]),
        "bandwidth": st.one_of(st.floats(1e-3, 1e3), odd_numbers),
        "alpha": st.one_of(st.floats(0.01, 0.999), odd_numbers),
        "class_balance": st.one_of(
            st.sampled_from(["auto", "mass", "none", "x"]),
            st.lists(st.sampled_from([0.0, 0.2, 0.8, 1.0, 1e308, -1.0, float("nan")]), max_size=4),
        ),
        "clamp": st.sampled_from(["soft", "hard"]),
        "scaling": st.sampled_from(["auto", "none", "standard", "unit", "robust"]),
        "projection": st.one_of(st.integers(1, 8), odd_numbers),
        "solver": st.sampled_from(["closed_form", "cg", "iteration"]),
        "max_iter": st.sampled_from([0, 1, 50, -1]),
        "tol": odd_numbers,
        "random_state": st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([-1, None, "x"])),
    },
)
"""Parameters of the classifier: good ones, and some that must be refused."""


@st.composite
def arrays(draw: Any) -> Any:
    """Rows of any type, size and storage, with what may be wrong with them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(1, 60)), draw(st.integers(1, 12))
    X = rng.normal(size=(n, m))
    X[:, 0] += 3 * (np.arange(n) % 3)
    size = draw(st.sampled_from([1.0, 1.0, 1.0, 1e-6, 1e-40, 1e-200, 5e-324, 1e6, 1e30, 1e200]))
    with np.errstate(all="ignore"):
        for change in draw(st.lists(st.sampled_from(CHANGES), max_size=2)):
            X = change(X, rng)
        X = (X * size).astype(draw(st.sampled_from(DTYPES)))
    storage = draw(st.sampled_from([*STORAGE, "array", "array"]))
    if X.dtype == np.float16 and storage in ("csr", "csc", "coo"):
        X = X.astype(np.float32)
    return STORAGE[storage](X)


def _constant(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 1.0, 1e12, -1e-12])
    return X


def _mixed_scales(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X * 10.0 ** rng.integers(-12, 12, X.shape[1])


def _repeated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X[rng.integers(0, max(1, len(X) // 5), len(X))]


def _broken(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice([np.nan, np.inf, -np.inf, 1e308])
    return X


def _outlier(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[rng.integers(len(X))] *= 10.0 ** rng.integers(1, 160)
    return X


def _mostly_zero(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(X.shape) < 0.9, 0.0, X)


CHANGES = (_constant, _mixed_scales, _repeated, _broken, _outlier, _mostly_zero)


@st.composite
def labels(draw: Any, n: int) -> Any:
    """Labels of n rows: numbers, texts, truth values, few or all, and wrong ones."""
    classes = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = rng.integers(0, classes, n)
    known = rng.random(n) < draw(st.sampled_from([0.05, 0.3, 1.0]))
    kind = draw(st.sampled_from(["int", "int", "int", "float", "text", "object", "large", "short"]))
    if kind == "float":
        return np.where(known, codes.astype(float), draw(st.sampled_from([np.nan, -1.0, np.inf])))
    if kind == "text":
        return np.where(known, np.array(["b", "a", "c d", "é", "\x1b[1m", "-2"])[codes], "-1")
    if kind == "object":
        some = np.array([1, "a", None, 2.5, True, "-1"], dtype=object)
        return some[np.where(known, codes, 5)]
    if kind == "large":
        return np.where(known, 2**62 + codes, -1)
    y = np.where(known, codes, -1)
    return y[:-1] if kind == "short" else y


@st.composite
def weights(draw: Any, n: int) -> Any:
    """No weights, usual ones, or some that must be refused."""
    kind = draw(st.sampled_from(["none", "none", "usual", "zeros", "huge", "nan", "negative"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    usual = rng.random(n) + 0.1
    odd = {"zeros": 0.0, "huge": 1e300, "nan": np.nan, "negative": -1.0}
    if kind == "none":
        return None
    if kind in odd:
        usual[rng.integers(n)] = odd[kind]
    return usual
