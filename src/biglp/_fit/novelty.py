"""Classes that nobody has labelled: a group of rows that is unlike all labelled ones.

The variance that the labels leave open (:mod:`biglp._algebra.posterior`), as a share v_i of what
was open before, is large at rows that no label says much about. Some rows always are; the question
is whether more are than labels of the known classes would leave. So labels are drawn again: for
each class as many as it has, at random from the rows that the model calls that class. When all
classes are known, the given labels are one more such draw. When the rows of a class without labels
are called something else, such draws fall on them too, and the given labels do not:

    e_i = v_i − mean of v_i over the draws,     t = mean of the largest 30 % of e.

There is a group unlike all labels when t is further above its mean over the draws than chance would
take it. In the 30 leading eigenvectors the variance is that of whole classes; with more of them it
is that of small clusters, of which some are without a label in any case.

Only a sample of rows is read: no sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from biglp._algebra.posterior import ALPHA, Posterior
from biglp._compiled import largest_column
from biglp._core.arrays import Rows, is_torch, namespace, squared_norms, to_numpy
from biglp._core.errors import BigLPWarning, DriftWarning, UnlikeLabelsWarning
from biglp._core.threads import one_blas_thread
from biglp._fit.sample import SpectralSample, clustered
from biglp._graph.features import float64_features
from biglp._graph.graph import Graph
from biglp._graph.kernels import Search
from biglp._labels.labels import Labels
from biglp._learn.base import SAMPLE, Predictor, Problem, part_of_labels
from biglp._rows.source import Source

# --------------------------------------------------------------------------------------------------
# Whether new rows are like the training rows: far rows, and what is said of them.
#
# A row is far when it is farther from the landmarks near it than 99 in 100 training rows are. The
# fifth nearest landmark is taken, because the nearest one of a training row may be the row itself.


PLACES, ROWS_EACH = 16, 128
"""Rows that are looked at: so many in each of so many places, evenly over all rows."""
TOGETHER_BYTES = 4 << 20
"""They are compared with the landmarks together where they take no more than this."""
NEAREST = 5
USUAL = 0.99
"""Share of the training rows that are not far."""
MOST_FAR = 0.05
MOST_OUTSIDE = 0.05
MOST_UNKNOWN = 0.05
MORE_MISSING = 0.1
"""Shares of rows from which on the user is warned; ``MORE_MISSING`` than in the training rows."""
CHANCE = 2.33
"""Standard deviations that a share of a few rows goes beyond by chance once in a hundred times."""
FEWEST_ROWS = 20
"""Rows below which shares say nothing, and nothing is said in Python, where few are often given."""
NAMED = 5


def usual_distance(graph: Graph) -> float | None:
    """Distance from the landmarks that nearly all training rows keep; None without landmarks."""
    if getattr(graph.features.factor, "landmarks", None) is None:
        return None
    return float(np.quantile(_distances(graph, new=False), USUAL))


def far_rows(graph: Graph, usual: float | None) -> dict[str, float]:
    """Share of new rows that are farther from the landmarks than the training rows were."""
    if usual is None or getattr(graph.features.factor, "landmarks", None) is None:
        return {}
    return {"far_rows": round(float((_distances(graph, new=True) > usual).mean()), 6)}


def _distances(graph: Graph, *, new: bool) -> np.ndarray:
    """Distance from a landmark near them, of the sample's rows or of new rows here and there."""
    source, n_rows = graph.source, graph.source.n_rows
    landmarks = graph.features.factor.landmarks  # type: ignore[attr-defined]
    pieces: Iterable[Rows]
    if not new:
        looked_at, sample = SAMPLE, graph.sample_rows(SAMPLE)
        starts = np.arange(0, sample.shape[0], ROWS_EACH)
        pieces = (sample[start : start + ROWS_EACH] for start in starts.tolist())
    else:
        looked_at = PLACES * ROWS_EACH
        if n_rows > looked_at:  # rows from some places of all, or all of few
            starts = np.linspace(0, n_rows - ROWS_EACH, PLACES).astype(int)
        else:
            starts = np.arange(0, n_rows, ROWS_EACH)
        pieces = (source.read(start, min(start + ROWS_EACH, n_rows)) for start in starts.tolist())
    # Together on a card, and where they take little memory: landmarks are made ready once then.
    small = 8 * min(n_rows, looked_at) * source.n_features <= TOGETHER_BYTES
    if source.device != "cpu" or (small and not source.is_sparse):
        pieces = list(pieces)
        pieces = [namespace(pieces[0]).concatenate(pieces)]
    count = min(NEAREST, len(landmarks))
    search, parts = Search(landmarks.astype(np.float64), graph.features.factor.compiled), []
    with one_blas_thread():  # several wait for each other where other programs are at work
        for piece in pieces:
            rows = piece.double() if is_torch(piece) else piece.astype(np.float64)
            _, relative = search.nearest(rows, count)
            squared = to_numpy(relative[:, -1] + squared_norms(rows))
            parts.append(np.sqrt(np.maximum(squared, 0.0)))
    return np.concatenate(parts)


def drift_of(graph: Graph, source: Source, report: Mapping[str, Any]) -> dict[str, Any]:
    """Compare new rows with the training rows: columns of a table, and distances.

    ``graph``: the new rows, tied to the landmarks; ``source``: the new rows as they were opened;
    ``report``: that of the fit.
    """
    return {**source.compare_columns(), **far_rows(graph, report.get("usual_distance"))}


def drift_warnings(drift: dict[str, Any], whole: str = "") -> list[BigLPWarning]:
    """Warn where new rows are unlike the training rows; ``whole`` says where all figures are."""
    notes, n_rows = [], drift.get("rows", 0)

    def is_more(share: float, most: float) -> bool:
        """Whether a share of the new rows is above ``most`` by more than chance brings it."""
        return n_rows * (share - most) > CHANCE * np.sqrt(n_rows * most * (1.0 - most))

    for name, facts in drift.get("columns", {}).items():
        if is_more(facts.get("unknown", 0.0), MOST_UNKNOWN):
            examples = ", ".join(map(repr, facts["examples"]))
            notes.append(f"{facts['unknown']:.0%} have unknown categories in {name!r} ({examples})")
        if is_more(facts.get("outside", 0.0), MOST_OUTSIDE):
            reach = f"{facts['low']:.6g} to {facts['high']:.6g}"
            notes.append(f"{facts['outside']:.0%} are outside the range of {name!r} ({reach})")
        usual = min(facts.get("missing_before", 0.0) + MORE_MISSING, 1.0)
        if is_more(facts.get("missing", 0.0), usual):
            before = f"{facts['missing_before']:.0%}"
            notes.append(
                f"{facts['missing']:.0%} have no value in {name!r}, where {before} had none"
            )
    if drift.get("far_rows", 0.0) > MOST_FAR:
        notes.append(f"{drift['far_rows']:.0%} of the rows are far from all training rows")
    if not notes:
        return []
    more = f"; and {len(notes) - NAMED} more{whole}" if len(notes) > NAMED else ""
    return [
        DriftWarning(
            f"the new rows are unlike the training rows: {'; '.join(notes[:NAMED])}{more}. "
            "Labels of such rows are guesses: label some and fit again, or repair the columns."
        )
    ]


# --------------------------------------------------------------------------------------------------


LEADING = 30
"""Eigenvectors in which rows of a sample are compared."""
LEAST_ROWS = 1000
"""Rows that are needed: of a few hundred, a group would be a handful, and chance is at work."""
MOST_LABELS = 500
"""Labels that are looked at: a random part of many shows what is missing just as well."""
DRAWS = 20
"""Sets of labels that are drawn again."""
UPPER = 0.3
"""Share of the rows that t is about: about the most that an unknown class will have."""
UNUSUAL, FEW_LABELS = 2.5, 50
"""Standard deviations above the mean, which chance alone goes beyond in 1 % of all cases; times
√(l / 50) for l labels above 50. The draws rely on what rows are called, which is wrong for some:
the more labels there are, the further such errors alone take t."""
LEAST_SHARE, MOST_SHARE = 0.05, 0.5
"""Share of the rows that a group must have; chance alone gives 1 / (DRAWS + 1), about as much. More
than half of all rows are no class that was forgotten: labels are few, or wrong."""
EXAMPLES = 4
"""Rows of a group that are named, and suggested first."""


def unlike_labels(problem: Problem[Any], answer: Predictor) -> dict[str, Any] | None:
    """Look for rows that are unlike all labels; None when there is no such group.

    ``answer``: what was learnt from the labels. For the report: ``share`` of all rows that is in
    the group, estimated from a sample, and some ``rows`` of it, unlike each other.
    """
    labels, graph, seed = problem.labels, problem.graph, problem.settings.seed
    n_rows = graph.source.n_rows
    if not isinstance(labels, Labels) or n_rows < LEAST_ROWS or n_rows == len(labels.rows):
        return None
    if len(labels.rows) > 2 * len(labels.by_people.rows):
        return None  # rows that names have chosen are unlike most rows of their classes
    if problem.settings.method != "committee":  # what is unusual is not known of other graphs
        return None
    with one_blas_thread():
        features = float64_features(graph.features.of_rows(problem.sample_rows))
        sample = SpectralSample.of(graph, SAMPLE, features, LEADING)
        looked_at = to_numpy(problem.sample_rows) if answer.needs_rows else None
        outputs, _ = answer.outputs(features.astype(graph.source.dtype), looked_at)
        called = largest_column(to_numpy(outputs))
        part = part_of_labels(labels, MOST_LABELS, seed)
        known = sample.spectrum.rotated(graph.features_of(part.rows))
        return graph.engine.once(lambda: _group(sample, called, part.codes, known, seed))


def unlike_warning(found: dict[str, Any]) -> UnlikeLabelsWarning:
    """Say that a class may be missing, from the report."""
    examples = ", ".join(f"{row:,}" for row in found["rows"])
    return UnlikeLabelsWarning(
        f"about {found['share']:.0%} of the rows form a group unlike all labelled rows (for "
        f"example rows {examples}): a class, or a part of one, may be without labels; label some "
        "of them (suggest in Python, biglp suggest on the command line)."
    )


def _group(
    sample: SpectralSample, called: np.ndarray, codes: np.ndarray, known: np.ndarray, seed: int
) -> dict[str, Any] | None:
    """Compare the given labels with such as are drawn again.

    ``called``: (m,), the classes of the sample's rows; ``known``: (l, q), the labelled rows.
    """
    with one_blas_thread():
        rng, rotated = np.random.default_rng(seed), sample.rotated
        # Of each class as many other labelled rows as it has labels, from the rows that are called
        # it. Where the sample has too few of these, the labels stay where they are.
        parts = []
        for code in np.unique(codes).tolist():
            own, others = np.flatnonzero(codes == code), np.flatnonzero(called == code)
            if len(others) < len(own):
                parts.append(np.broadcast_to(known[own], (DRAWS, len(own), known.shape[1])))
            else:  # the first few of each row in random order
                order = rng.random((DRAWS, len(others))).argpartition(len(own) - 1, axis=1)
                parts.append(rotated[others[order[:, : len(own)]]])
        redrawn = np.concatenate(parts, axis=1)  # (DRAWS, l, q)
        # Variance of each row before any label, and the share of it that labels leave open.
        before = np.einsum("ij,ij->i", rotated / (1.0 - ALPHA * sample.spectrum.values), rotated)
        whole, opened = np.where(before > 0, before, 1.0), []
        for labelled in (redrawn, known):
            posterior = Posterior.from_labels(sample.spectrum.values, len(sample.rows), labelled)
            after = posterior.variances(rotated)
            opened.append(np.where(before > 0, after / whole, 1.0))
        drawn, given = opened  # (DRAWS, m) and (m,)
        usual, count = drawn.mean(axis=0), max(1, int(UPPER * len(given)))
        values, excess = (
            np.sort(np.partition(e, -count, axis=-1)[..., -count:], axis=-1).mean(axis=-1)
            for e in (drawn - usual, given - usual)
        )
        allowed = UNUSUAL * np.sqrt(max(1.0, len(codes) / FEW_LABELS))
        if excess <= values.mean() + allowed * values.std(ddof=1):
            return None
        group = np.flatnonzero(given > drawn.max(axis=0))
        if not LEAST_SHARE * len(given) <= len(group) <= MOST_SHARE * len(given):
            return None
        clusters, squared = clustered(sample.directions(ALPHA)[group], EXAMPLES, seed)
    examples = [
        int(sample.rows[group[members[squared[members].argmin()]]])
        for members in (np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters))
    ]
    return {"share": round(len(group) / len(sample.rows), 3), "rows": examples}
