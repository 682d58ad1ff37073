"""Problems at random, for hypothesis: shared by the tests and the campaign."""

from typing import Any

import numpy as np
import pandas as pd
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
    "bsr": sparse.bsr_array,
    "view": lambda X: np.repeat(X, 2, axis=0)[::2],
    "frame": lambda X: pd.DataFrame(X).rename(columns="x{}".format),
    "mixed": lambda X: mixed_frame(X),
}
DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool", ">f8", "longdouble")
_ODD = (float("nan"), float("inf"), "auto", True, None, "x", 5e-324, 2**63)
odd_numbers = st.sampled_from([0, 1, -1, 0.5, 0.99, 1 - 1e-16, 1e-7, 1e-300, 1e300, *_ODD])
sizes = st.sampled_from([5e-324, 1e-300, 1e-20, 1e-7, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e20, 1e300])
"""Numbers above 0, of any size."""
_PRIORS = (0.0, 0.2, 0.8, 1.0, 1e308, 1e-308, -1.0, float("nan"))
shared_parameters = {
    "factor": st.sampled_from(["anchors", "nystrom", "linear", "glnp", "glnp-mu"]),
    "n_landmarks": st.one_of(st.integers(1, 40), st.sampled_from([10_000, "auto"])),
    "landmarks": st.sampled_from(["kmeans", "random", "kmeans-full"]),
    "bandwidth": sizes,
    "alpha": st.one_of(st.floats(1e-9, 1 - 1e-9), st.just("auto")),
    "scaling": st.sampled_from(
        ["auto", "none", "standard", "minmax", "log", "unit", "text", "table"]
    ),
    "projection": st.one_of(st.integers(1, 8), st.sampled_from(["auto", "none", 10**6])),
    "effort": st.sampled_from(["fast", "balanced", "best"]),
    "random_state": st.one_of(st.integers(0, 2**32 - 1), st.none()),
    "missing": st.sampled_from(["auto", "mean", "error"]),
}
_PARAMETERS = {
    **shared_parameters,
    "class_balance": st.one_of(
        st.sampled_from(["auto", "mass", "share", "centre", "none"]),
        st.lists(st.sampled_from(_PRIORS), max_size=4),
    ),
    "filter": st.sampled_from(["auto", "spreading", "poisson"]),
    "clamp": st.sampled_from(["soft", "hard"]),
    "solver": st.sampled_from(["closed_form", "iterative"]),
    "max_iter": st.sampled_from([1, 2, 50]),
    "tol": sizes,
}
_FACTOR_PARAMS: dict[str | None, Any] = {
    "anchors": {"n_nearest": st.integers(1, 50), "bandwidth_factor": sizes},
    "nystrom": {"bandwidth_factor": sizes},
    "linear": {"shift": st.booleans()},
    "glnp": {
        "start": st.sampled_from(["uniform", "clusters", "x"]),
        "max_iter": st.integers(0, 30),
        "tol": st.one_of(sizes, st.just(0.0)),
    },
}


@st.composite
def parameters(draw: Any, known: dict[str, Any] = _PARAMETERS) -> dict[str, Any]:
    chosen: dict[str, Any] = draw(
        st.lists(st.sampled_from(sorted(known)), max_size=6, unique=True).flatmap(
            lambda names: st.fixed_dictionaries({name: known[name] for name in names})
        )
    )
    if draw(st.integers(0, 4)) == 0:
        names = st.lists(st.sampled_from(sorted(known)), max_size=2)
        chosen |= {name: draw(odd_numbers) for name in draw(names)}
    own = chosen.get("factor")
    own = "glnp" if own == "glnp-mu" else own
    if isinstance(own, str) and own in _FACTOR_PARAMS and draw(st.booleans()):
        chosen["factor_params"] = draw(st.fixed_dictionaries({}, optional=_FACTOR_PARAMS[own]))
    return chosen


@st.composite
def arrays(draw: Any) -> Any:
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
    return stored(X, storage)


def stored(X: np.ndarray, storage: str) -> Any:
    if storage in ("csr", "csc", "coo", "bsr"):  # SciPy knows fewer types
        X = X.astype(np.float64 if X.dtype.kind == "f" and X.dtype.itemsize > 4 else np.float32)
    return STORAGE[storage](X)


@st.composite
def other_rows(draw: Any, n_features: int) -> Any:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(draw(st.integers(1, 9)), n_features))
    with np.errstate(all="ignore"):
        for change in draw(st.lists(st.sampled_from(CHANGES), max_size=1)):
            X = change(X, rng)
        X = (X * draw(st.sampled_from([1.0, 1.0, 1e-200, 1e6, 1e200]))).astype(
            draw(st.sampled_from(DTYPES))
        )
    return stored(X, draw(st.sampled_from([*STORAGE][:-2])))  # no tables


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
    kind = draw(st.sampled_from(["none", "none", "usual", "zeros", "huge", "nan", "negative"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    usual = rng.random(n) + 0.1
    odd = {"zeros": 0.0, "huge": 1e300, "nan": np.nan, "negative": -1.0}
    if kind == "none":
        return None
    if kind in odd:
        usual[rng.integers(n)] = odd[kind]
    return usual


def mixed_frame(X: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame({f"x{i}": column for i, column in enumerate(X.T.astype(float))})
    n = len(table)
    with np.errstate(all="ignore"):
        codes = np.nan_to_num(X[:, 0].astype(float), posinf=0, neginf=0).astype(np.int64)
    table["word"] = np.array(["a", "b", "", "1", "nan"], dtype=object)[codes % 5]
    table["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(codes % 500, unit="D")
    table["yes"] = pd.array(codes % 2 == 0, dtype="boolean")
    table["kind"] = pd.Categorical(table["word"])
    table.loc[n // 2 :: 3, ["word", "day", "x0", "yes"]] = None
    return table


@st.composite
def targets(draw: Any, n: int) -> Any:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from([(n,), (n,), (n, 1), (n, 2)]))
    y = rng.normal(size=shape) * draw(sizes)
    change = draw(st.sampled_from(["none", "none", "none", "constant", "odd", "integers", "short"]))
    if change == "constant":
        y[:] = draw(st.sampled_from([0.0, 1.0, 1e300, 5e-324]))
    elif change == "odd":
        y[rng.integers(n)] = draw(st.sampled_from([np.inf, 1e308, -1e308, np.nan]))
    y[rng.random(n) > draw(st.sampled_from([0.1, 0.5, 1.0]))] = np.nan
    if change == "integers":
        return np.clip(np.nan_to_num(y), -1e18, 1e18).astype(np.int64)
    return y[:-1] if change == "short" else y
