"""Whether new rows are like the training rows: far rows, and what is said of them.

A row is far when it is farther from the landmarks near it than 99 in 100 training rows are. The
fifth nearest landmark is taken, because the nearest one of a training row may be the row itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, is_torch, namespace, squared_norms, to_numpy
from biglp._core.errors import BigLPWarning, DriftWarning
from biglp._core.threads import one_blas_thread
from biglp._graph.graph import Graph
from biglp._graph.kernels import nearest_landmarks, searchable
from biglp._rows import PreparedRows, Source

PLACES, ROWS_EACH = 16, 128
"""Rows that are looked at: so many in each of so many places, evenly over all rows."""
TOGETHER_BYTES = 4 << 20
"""They are compared with the landmarks together where they take no more than this: landmarks are
made ready once then, and not for each place."""
NEAREST = 5
USUAL = 0.99
"""Share of the training rows that are not far."""
MOST_FAR = 0.05
MOST_OUTSIDE = 0.05
MOST_UNKNOWN = 0.05
MORE_MISSING = 0.1
"""Shares of rows from which on the user is warned; ``MORE_MISSING`` than in the training rows."""
FEWEST_ROWS = 20
"""Rows below which shares say nothing, and nothing is said in Python, where few are often given."""
NAMED = 5


def usual_distance(graph: Graph) -> float | None:
    """Distance from the landmarks that nearly all training rows keep; None without landmarks."""
    distances = _distances(graph)
    return None if distances is None else float(np.quantile(distances, USUAL))


def far_rows(graph: Graph, usual: float | None) -> dict[str, float]:
    """Share of new rows that are farther from the landmarks than the training rows were."""
    distances = None if usual is None else _distances(graph)
    if distances is None or usual is None:
        return {}
    return {"far_rows": round(float((distances > usual).mean()), 6)}


def drift_of(graph: Graph, source: Source, report: Mapping[str, Any]) -> dict[str, Any]:
    """Compare new rows with the training rows: columns of a table, and distances.

    Parameters
    ----------
    graph : Graph
        The new rows, tied to the landmarks.
    source : Source
        The new rows as they were opened.
    report : dict
        That of the fit.
    """
    return {**source.compare_columns(), **far_rows(graph, report.get("usual_distance"))}


def drift_warnings(drift: dict[str, Any], whole: str = "") -> list[BigLPWarning]:
    """Warn where new rows are unlike the training rows; ``whole`` says where all figures are."""
    told = [
        words for name, found in drift.get("columns", {}).items() for words in _told(name, found)
    ]
    if drift.get("far_rows", 0.0) > MOST_FAR:
        told.append(f"{drift['far_rows']:.0%} of the rows are far from all training rows")
    if not told:
        return []
    more = f"; and {len(told) - NAMED} more{whole}" if len(told) > NAMED else ""
    return [
        DriftWarning(
            f"the new rows are unlike the training rows: {'; '.join(told[:NAMED])}{more}. "
            "Labels of such rows are guesses: label some and fit again, or repair the columns."
        )
    ]


def _told(name: str, found: dict[str, Any]) -> list[str]:
    told = []
    if found.get("unknown", 0.0) > MOST_UNKNOWN:
        examples = ", ".join(map(repr, found["examples"]))
        told.append(f"{found['unknown']:.0%} have unknown categories in {name!r} ({examples})")
    if found.get("outside", 0.0) > MOST_OUTSIDE:
        reach = f"{found['low']:.6g} to {found['high']:.6g}"
        told.append(f"{found['outside']:.0%} are outside the range of {name!r} ({reach})")
    if found.get("missing", 0.0) > found.get("missing_before", 0.0) + MORE_MISSING:
        before = f"{found['missing_before']:.0%}"
        told.append(f"{found['missing']:.0%} have no value in {name!r}, where {before} had none")
    return told


def _some_rows(source: PreparedRows) -> Iterator[Rows]:
    """Rows from some places of all, or all of few; on a card, and if they are small, together."""
    n_rows, most = source.n_rows, PLACES * ROWS_EACH
    if n_rows > most:
        starts = np.linspace(0, n_rows - ROWS_EACH, PLACES).astype(int)
    else:
        starts = np.arange(0, n_rows, ROWS_EACH)
    read = (source.read(start, min(start + ROWS_EACH, n_rows)) for start in starts.tolist())
    small = not source.is_sparse and 8 * min(n_rows, most) * source.n_features <= TOGETHER_BYTES
    if source.device == "cpu" and not small:
        yield from read
    else:
        together = list(read)
        yield namespace(together[0]).concatenate(together)


def _distances(graph: Graph) -> np.ndarray | None:
    """Distance of some rows from a landmark near them."""
    landmarks = getattr(graph.factor, "landmarks", None)
    if landmarks is None:
        return None
    count = min(NEAREST, len(landmarks))
    compared: Rows = None
    parts = []
    with one_blas_thread():  # several wait for each other where other programs are at work
        for some in _some_rows(graph.source):
            rows = some.double() if is_torch(some) else some.astype(np.float64)
            if compared is None:
                compared = searchable(landmarks) if sparse.issparse(rows) else landmarks
                compared = compared.astype(np.float64)
            _, relative = nearest_landmarks(rows, compared, count)
            squared = to_numpy(relative[:, -1] + squared_norms(rows))
            parts.append(np.sqrt(np.maximum(squared, 0.0)))
    return np.concatenate(parts)
