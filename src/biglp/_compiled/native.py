"""The library of compiled loops (``c/``), and how it is called with arrays.

It was compiled for several kinds of processors, and the best one that this processor is of is
chosen when it is loaded. ``BIGLP_COMPILED`` chooses another one (``avx2``), or none (``off``). All
give the same bits. Where there is no library, NumPy does the work.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from biglp._compiled.packed_trees import Packed
from biglp._core.errors import (
    BigLPWarning,
    MissingExtraError,
    NonFiniteRowsError,
    ParameterError,
    warn_caller,
)

LIBRARY = Path(__file__).with_name("loops.dll" if sys.platform == "win32" else "loops.so")
CACHE_LINE = 64
BYTES = {"avx2": 32, "avx512": 64, "neon": 32}
"""Of a vector."""

LOOPS = ("nearest", "gaussian", "gram", "walk", "pairs", "many_pairs", "move_pairs")
"""Functions of the library, each for float32 at least."""


@cache
def library() -> tuple[Any, str]:
    """The library and the kind of processor it was compiled for; "" where NumPy does the work."""
    wanted = os.environ.get("BIGLP_COMPILED", "")
    if wanted == "off" or not LIBRARY.exists():
        return None, ""
    try:
        loops = ctypes.CDLL(str(LIBRARY))
        loops.ways.restype = ctypes.c_char_p
        ways = loops.ways().decode().split()
        for name in LOOPS if ways else ():  # a library of other sources lacks some
            getattr(loops, f"{name}_f32_{ways[0]}")
    except (OSError, AttributeError) as error:
        _say_numpy(
            f"the compiled loops cannot be loaded ({error}); install biglp "
            "again (in a clone: python hatch_build.py)"
        )
        return None, ""
    if not ways:
        _say_numpy("this processor has no AVX2, which the compiled loops need")
        return None, ""
    if wanted and wanted not in ways:
        raise ParameterError(
            f"BIGLP_COMPILED={wanted} is not known here; use off, {', '.join(ways)}, or unset it."
        )
    return loops, wanted or ways[0]


def can_run() -> bool:
    """Whether the compiled loops run here."""
    return library()[1] != ""


def in_words() -> str:
    """Who does the work, where the loops come from, or why they do not run."""
    way = library()[1]
    if way:
        names = {"avx2": "AVX2", "avx512": "AVX-512", "neon": "ARM"}
        return f"C for {names[way]}, from {LIBRARY}"
    if os.environ.get("BIGLP_COMPILED") == "off":
        return "NumPy, because BIGLP_COMPILED is off"
    if not LIBRARY.exists():
        return "NumPy, because this biglp was installed without a C compiler"
    return "NumPy, because the compiled loops cannot run here"


def check_can_run() -> None:
    """Refuse to go on where a fit began elsewhere with the compiled loops.

    Raises
    ------
    MissingExtraError
    """
    if not can_run():
        raise MissingExtraError(
            "this fit was begun with compiled loops, by another process or before it was resumed, "
            "and here they cannot run: this biglp was installed without them, the processor has "
            "no AVX2, or BIGLP_COMPILED is off. Install a wheel made for this platform, or begin "
            "the fit anew."
        )


def _say_numpy(reason: str) -> None:
    warn_caller(f"{reason}. NumPy does their work, which takes longer.", BigLPWarning)


def call(name: str, dtype: np.dtype[Any], *arguments: np.ndarray | int | float) -> None:
    """Call a function for numbers of a type; other threads of Python go on meanwhile."""
    loops, way = library()
    function = getattr(loops, f"{name}_f{8 * dtype.itemsize}_{way}")
    function.restype = None
    function(*map(_as_c, arguments))


def _as_c(argument: np.ndarray | int | float) -> Any:
    if isinstance(argument, np.ndarray):
        # A tenth of the time of ``ctypes.data``, which makes an object first.
        return ctypes.c_void_p(argument.__array_interface__["data"][0])
    if isinstance(argument, float):
        return ctypes.c_double(argument)
    return ctypes.c_int64(argument)


def lanes(dtype: np.dtype[Any]) -> int:
    """Numbers of a type in a vector."""
    return BYTES[library()[1]] // dtype.itemsize


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Room that begins on a cache line: a vector across two of them is read twice."""
    n_bytes = math.prod(shape) * dtype.itemsize
    room = np.empty(n_bytes + CACHE_LINE, dtype=np.uint8)
    first = -room.__array_interface__["data"][0] % CACHE_LINE
    return room[first : first + n_bytes].view(dtype).reshape(shape)


# --------------------------------------------------------------------------------------------------
# nearest.c


GROUP_VECTORS, GROUPS = 2, 6
"""Vectors of rows in a group, and groups that pass a panel before the next one comes."""


class Panels(NamedTuple):
    """Landmarks as they are searched."""

    landmarks: np.ndarray  # (panels, m, width), times −2
    lengths: np.ndarray  # (panels · width,), ‖l‖²; infinite where there is no landmark


def panels(landmarks: np.ndarray) -> Panels:
    """Cut landmarks into panels, in their own type: as many as leave few places empty."""
    k, m = landmarks.shape
    most = 12 if library()[1] == "avx512" else 6
    width = -(-k // -(-k // most))
    n_panels = -(-k // width)
    padded = np.zeros((n_panels * width, m), landmarks.dtype)
    padded[:k] = landmarks * landmarks.dtype.type(-2)
    lengths = np.full(n_panels * width, np.inf, landmarks.dtype)
    lengths[:k] = np.einsum("ij,ij->i", landmarks, landmarks)
    cut = padded.reshape(n_panels, width, m).transpose(0, 2, 1)
    return Panels(np.ascontiguousarray(cut), lengths)


def nearest(rows: np.ndarray, searched: Panels, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the ``count`` nearest landmarks of each row, and ‖x − l‖² − ‖x‖².

    Where a row is not finite, neither are its distances.
    """
    dtype, n_rows = searched.landmarks.dtype, len(rows)
    n_panels, m, width = searched.landmarks.shape
    if rows.shape[1] != m:  # of a damaged model
        raise ValueError(f"rows of {rows.shape[1]} features, and landmarks of {m}")
    group = GROUP_VECTORS * lanes(dtype)
    if n_rows < group:
        longer = np.zeros((group, m), dtype)
        longer[:n_rows] = rows
        columns, values = nearest(longer, searched, count)
        return columns[:n_rows], values[:n_rows]
    columns, values = np.empty((n_rows, count), np.int32), np.empty((n_rows, count), dtype)
    room = aligned((GROUPS * group * (m + 2 * count),), dtype)
    rows = np.require(rows, dtype, ["C", "A"])
    sizes = n_panels, width, count
    call("nearest", dtype, rows, n_rows, m, *searched, *sizes, room, values, columns)
    return columns, values


# --------------------------------------------------------------------------------------------------
# gaussian.c


TERMS = ROWS = 4
"""Features of a landmark in a vector, and rows at once."""


class Tables(NamedTuple):
    """What rows are multiplied by."""

    landmarks: np.ndarray  # (chunks, steps, landmarks of a chunk, TERMS)
    starts: np.ndarray  # (chunks · landmarks of a chunk, TERMS): what sums begin with
    gamma: float  # 0 where there are no exponentials to be taken
    k: int


class Made(NamedTuple):
    """What features are made from: landmarks, and the mixing of what they give, if any."""

    landmarks: Tables
    root: Tables | None


def tables(landmarks: np.ndarray, bandwidth: float, root: np.ndarray | None) -> Made:
    """Tables of a Nyström factor, in the type of its landmarks."""
    gamma = 0.5 / bandwidth**2
    lengths = gamma * np.einsum("ij,ij->i", landmarks, landmarks)
    by_rows = None if root is None else table_of(root.T.astype(landmarks.dtype))
    return Made(table_of(landmarks, gamma, lengths), by_rows)


def table_of(
    landmarks: np.ndarray, gamma: float = 0.0, lengths: np.ndarray | None = None
) -> Tables:
    """Cut landmarks into chunks of a vector, in their own type.

    With γ and lengths γ‖l‖² the features of a row are exp(−γ‖x − l‖²), without them x·l.
    """
    dtype = landmarks.dtype
    k, m = landmarks.shape
    each = lanes(dtype) // TERMS
    n_chunks, n_steps = -(-k // each), -(-m // TERMS)
    padded = np.zeros((n_chunks * each, n_steps * TERMS), dtype)
    padded[:k, :m] = landmarks * (2.0 * gamma or 1.0)
    if m > TERMS:  # the last step ends where the row does, and begins with features that are done
        padded[:, -TERMS:] = np.roll(padded[:, -TERMS:], -m % TERMS, axis=1)
    starts = np.zeros((n_chunks * each, TERMS), dtype)
    if lengths is not None:
        starts[:k, 0] = -lengths
    cut = padded.reshape(n_chunks, each, n_steps, TERMS).transpose(0, 2, 1, 3)
    return Tables(np.ascontiguousarray(cut), starts, float(gamma), k)


def features(
    rows: np.ndarray, made_from: Made, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Features of a block, and their column sums in float64.

    Raises
    ------
    NonFiniteRowsError
        When a row holds NaN, infinity or values too large to square.
    """
    if made_from.root is None:
        return multiplied(rows, made_from.landmarks, out)
    return multiplied(multiplied(rows, made_from.landmarks)[0], made_from.root, out)


def multiplied(
    rows: np.ndarray, by: Tables, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Features of a block by one table, and their column sums, as :func:`features`."""
    dtype, (n_rows, m) = by.landmarks.dtype, rows.shape
    if -(-m // TERMS) != by.landmarks.shape[1]:  # of a damaged model
        raise ValueError(f"rows of {m} features, and landmarks of others")
    if n_rows < ROWS or m < TERMS:
        longer = np.zeros((max(n_rows, ROWS), max(m, TERMS)), dtype)
        longer[:n_rows, :m] = rows
        made = multiplied(longer, by)[0][:n_rows]
        if out is not None:
            out[:] = made
        return made if out is None else out, made.sum(axis=0, dtype=np.float64)
    if out is None:
        out = np.empty((n_rows, by.k), dtype)
    rows, sums = np.require(rows, dtype, ["C", "A"]), np.zeros(by.starts.shape)
    finite = np.zeros(1, dtype=np.int64)
    table = by.landmarks, by.starts, by.gamma, by.k
    call("gaussian", dtype, rows, n_rows, m, *table, out, sums, finite)
    if not finite[0]:
        raise NonFiniteRowsError
    return out, sums.sum(axis=1)[: by.k]


class Multiplied(np.ndarray):
    """Features whose product with a few columns, as of one for each class, is compiled.

    BLAS copies all features first, which takes as long as reading them. The rest is NumPy's, and
    what comes of it is a plain array.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **others: Any) -> Any:
        """Multiply matrices of one type; leave everything else to NumPy."""
        plain = [x.view(np.ndarray) if isinstance(x, Multiplied) else x for x in inputs]
        if ufunc is np.matmul and method == "__call__" and not others:
            x, y = plain
            if (
                x.ndim == y.ndim == 2
                and x.dtype == y.dtype
                and x.size
                and isinstance(y, np.ndarray)
            ):
                return multiplied(x, table_of(y.T))[0]
        if "out" in others:
            others["out"] = tuple(np.asarray(x) for x in others["out"])
        return getattr(ufunc, method)(*plain, **others)


# --------------------------------------------------------------------------------------------------
# gram.c


TILE_ROWS = 64
"""Rows of a tile."""

_own = threading.local()  # what a thread works in


def gram(
    features: np.ndarray,
    by: np.ndarray,
    least: float,
    look_closer: Callable[[np.ndarray], tuple[np.ndarray, int]],
) -> tuple[np.ndarray, np.ndarray, int]:
    """Normalise features in place; return F̄ᵀF̄, F̄ᵀ1 and how many rows were repaired.

    A row's degree is its product with ``by``. Those of ``least`` or less are looked at more
    closely, which gives 1/√d of some rows, and how many of them were repaired.
    """
    assert features.flags.c_contiguous
    dtype, (n_rows, p) = features.dtype, features.shape
    line = CACHE_LINE // dtype.itemsize
    width = -(-p // line) * line
    rooms: dict[Any, tuple[np.ndarray, ...]] = _own.__dict__
    key = f"{width}, {dtype}"
    if key not in rooms:
        sums = aligned((width + 1, width), np.dtype(np.float64))
        rooms[key] = aligned((TILE_ROWS, width), dtype), sums, aligned((width,), dtype)
    tile, sums, weights = rooms[key]  # the last line of the sums is that of F̄ᵀ1
    sums[:] = 0
    weights[: width - p], weights[width - p :] = 0, by
    matrix, factors = np.empty((p, p)), np.empty(n_rows + line, dtype)
    at, n_repaired = np.zeros(2, dtype=np.int64), 0
    while True:
        sizes = n_rows, p, weights, width, least
        call("gram", dtype, features, *sizes, factors, tile, sums, matrix, at)
        begin = int(at[0])
        if begin >= n_rows:
            return matrix, sums[width, width - p :].copy(), n_repaired
        # The loops have come to rows that are to be looked at more closely, and go on after that.
        end, at[1] = min(begin + TILE_ROWS, n_rows), 1
        factors[begin:end], n_more = look_closer(features[begin:end])
        n_repaired += n_more


# --------------------------------------------------------------------------------------------------
# trees.c


TILE_VECTORS = 4
"""Vectors of a tile of rows."""
CACHED = 1 << 18
"""Bytes of rows that a tree is asked about before the next one is."""


def tree_tile() -> int:
    """Rows of a tile, for which trees are packed."""
    return TILE_VECTORS * lanes(np.dtype(np.float32))


def tree_totals(rows: np.ndarray, packed: Packed) -> np.ndarray:
    """Sums of what the leaves of all trees say, added in their order.  (b, m) → (b, columns).

    ``rows`` are contiguous, float32 or float64, and have all features of the trees.
    """
    (n_rows, width), tile, columns = rows.shape, tree_tile(), packed.values.shape[1]
    tiles = -(-n_rows // tile)
    totals = np.zeros((tiles * tile, columns), dtype=np.float32)
    if n_rows and width:
        at_once = min(max(CACHED // (4 * width * tile), 1), tiles)
        room = aligned(((1 + at_once) * tile * width,), totals.dtype)
        given = rows, int(rows.dtype == np.float64), n_rows, width
        trees = packed.trees, len(packed.trees), packed.words, packed.comparisons, packed.nodes
        call("walk", totals.dtype, *given, *trees, packed.values, columns, at_once, room, totals)
    return totals[:n_rows]
