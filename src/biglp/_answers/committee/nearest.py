"""The nearest labelled rows vote: what thousands of labels know that no landmark does.

Label spreading sees a row through its landmarks, each of which stands for many rows. Where labels
are so many that a row's own neighbours are labelled, asking them directly is better. Of the k
nearest labelled rows with rows v_i of w·Y,

    ℓ_j = log( (Σ_i v_ij + 1/c) / (Σ_ij v_ij + 1) ):

one vote is spread evenly over the classes, because k that agree are not certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from biglp._answers.base import Extra
from biglp._answers.committee.member import Asked, Evidence, Member, MemberFit, Opinion
from biglp._core.arrays import Array, Rows, is_torch, like, namespace, smallest, to_numpy
from biglp._core.shape import Shape

NEIGHBOURS = 5
MIN_LABELS = 1000
"""Labels below which the graph and the other members know all that neighbours do."""
MAX_LABELS = 20_000
MAX_BYTES = 16 << 20
"""What the voters' rows may take, in memory and in a model file."""
MAX_PAIRS = 300_000_000
"""Distances from all rows to all voters; a second or two on one processor."""
DISTANCES = 1 << 20
"""Distances that are held at once on a processor; a GPU gets sixteen times as many."""


@dataclass(frozen=True)
class Nearest(Opinion):
    """Labelled rows that vote on rows near them.

    Attributes
    ----------
    rows : ndarray of shape (v, m)
    votes : ndarray of shape (v, c)
        Their rows of w·Y.
    """

    rows: np.ndarray
    votes: np.ndarray

    def logits(self, asked: Asked) -> Array:
        """Ask the labelled rows near each row."""
        return self.of(asked.rows)

    def of(self, rows: Rows, own: np.ndarray | None = None) -> Array:
        """Logarithm of the neighbours' smoothed votes.  (b, m) → (b, c).

        ``own`` says which voter each row is itself (-1: none); it has no vote there.
        """
        xp = namespace(rows)
        voters, votes = like(rows, self.rows), like(rows, self.votes)
        sizes = (voters * voters).sum(1)
        step = max(DISTANCES * (16 if is_torch(rows) else 1) // len(voters), 1)
        parts = []
        for start in range(0, rows.shape[0], step):
            # ‖x − v‖² − ‖x‖² ranks the voters of a row.
            distances = rows[start : start + step] @ (-2.0 * voters.T)
            distances += sizes
            if own is not None:
                here = own[start : start + step]
                distances[np.flatnonzero(here >= 0), here[here >= 0]] = np.inf
            columns, _ = smallest(distances, NEIGHBOURS)
            parts.append(votes[columns].sum(1))
        counted = xp.concatenate(parts) if parts else votes[:0]
        return xp.log((counted + 1.0 / votes.shape[1]) / (counted.sum(1)[:, None] + 1.0))


class NearestMember(Member):
    """The nearest labelled rows, where there are enough of them."""

    name = "nearest labels"
    worth = 0.2  # the search takes most of a block's time
    opinion = Nearest

    @classmethod
    def candidates(cls, evidence: Evidence) -> list[Self]:
        """None where labels are few."""
        labels, n_features = evidence.problem.labels, evidence.rows.shape[1]
        return [cls()] if count_voters(len(labels.rows), labels.n_rows, n_features) else []

    @classmethod
    def extra(cls, shape: Shape) -> Extra:
        """Voters as they are read and as they are kept, and a block's distances to them."""
        voters = count_voters(shape.n_labelled, shape.n_rows, shape.width)
        itemsize = shape.dtype.itemsize
        return Extra(
            small=(itemsize + 4) * voters * shape.width,
            block=itemsize * DISTANCES * (voters > 0),
        )

    def learn(self, evidence: Evidence) -> MemberFit:
        """Take labelled rows as voters, more than the other members learn from."""
        problem, part = evidence.problem, evidence.part
        labels, n_features = problem.labels, evidence.rows.shape[1]
        chosen = problem.part_of_labels(count_voters(len(labels.rows), labels.n_rows, n_features))
        same = len(chosen.rows) == len(part.rows) == len(labels.rows)
        rows = evidence.rows if same else to_numpy(problem.graph.source.take(chosen.rows))
        votes = chosen.one_hot(chosen.codes) if chosen.given is None else chosen.given
        dense = rows.toarray() if sparse.issparse(rows) else rows
        opinion = Nearest(np.asarray(dense, dtype=np.float32), votes.astype(np.float32))
        # Which voter a labelled row is itself, so as not to ask it about itself; -1: none.
        place = np.minimum(np.searchsorted(chosen.rows, part.rows), len(chosen.rows) - 1)
        own = np.where(chosen.rows[place] == part.rows, place, -1)
        held_out = opinion.of(evidence.rows, own)
        held_out[evidence.lone] = np.nan
        return MemberFit(opinion, held_out, opinion.of(evidence.sample_rows))


def count_voters(n_labelled: int, n_rows: int, n_features: int) -> int:
    """Labelled rows that may vote on so many rows; 0 where they are too few to be worth it."""
    most = min(n_labelled, MAX_LABELS, MAX_BYTES // (4 * n_features), MAX_PAIRS // n_rows)
    return most if most >= MIN_LABELS else 0
