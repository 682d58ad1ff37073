"""The nearest labelled rows vote: what thousands of labels know that no landmark does.

Label spreading sees a row through its landmarks, each of which stands for many rows. Where labels
are so many that a row's own neighbours are labelled, asking them directly is better. Of the k
nearest labelled rows with rows v_i of w·Y,

    ℓ_j = log( (Σ_i v_ij + 1/c) / (Σ_ij v_ij + 1) ):

one vote is spread evenly over the classes, because k that agree are not certain.

With few features a k-d tree finds them; with more a matrix product is faster (docs/benchmarks.md).
The more rows there are, the fewer of many labelled ones are asked about each, down to a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, is_torch, like, namespace, smallest, to_numpy
from biglp._core.size import EFFORTS, Cost, Effort, Size
from biglp._graph.kernels import SEARCH_CELLS, SEARCH_ROWS, pair_seconds
from biglp._learn.base import part_of_labels
from biglp._learn.committee.answer import of_each_row
from biglp._learn.committee.member import Member, MemberFit, MemberModel, TrainingSet

NEIGHBOURS = 5
MIN_LABELS = 1000
"""Labels below which the graph and the other members know all that neighbours do."""
MAX_LABELS = 20_000
MAX_BYTES = 16 << 20
"""What the voters' rows may take, in memory and in a model file."""
FEW_FEATURES, TREE_SECONDS = 8, 5e-6
"""Features up to which a k-d tree is faster than comparing a row with all voters, and what it takes
for a row, about."""
DISTANCES = 1 << 20
"""Distances that are held at once on a processor; a GPU gets sixteen times as many."""


@dataclass(frozen=True)
class Nearest(MemberModel):
    """Labelled rows that vote on rows near them."""

    rows: np.ndarray  # (v, m)
    votes: np.ndarray  # (v, c): their rows of w·Y

    @property
    def row_seconds(self) -> float:  # type: ignore[override]
        """That of a search in a tree, or of comparing the row with all voters."""
        voters, n_features = self.rows.shape
        by_products = voters * pair_seconds(n_features)
        return min(TREE_SECONDS, by_products) if n_features <= FEW_FEATURES else by_products

    @cached_property
    def tree(self) -> Any:
        """The voters in a k-d tree."""
        from scipy.spatial import KDTree  # slow to load, and seldom needed

        # Unbalanced: the median of many equal rows takes long to find.
        return KDTree(self.rows, balanced_tree=False)

    def of(self, rows: Rows, own: np.ndarray | None = None) -> Array:
        """Logarithm of the neighbours' smoothed votes.  (b, m) → (b, c).

        ``own`` says which voter each row is itself (-1: none); it has no vote there.
        """
        xp = namespace(rows)
        if isinstance(rows, np.ndarray) and rows.shape[1] <= FEW_FEATURES:
            wanted = min(NEIGHBOURS + (own is not None), len(self.rows))
            found = self.tree.query(rows, wanted)[1].reshape(len(rows), wanted)
            if own is not None and wanted > NEIGHBOURS:
                # A row's own voter is taken out of the nearest; where it is not among them, or
                # there are several rows like it, the last one goes.
                itself = found == own[:, None]
                itself[~itself.any(axis=1), -1] = True
                found = found[~itself].reshape(len(rows), NEIGHBOURS)
            counted = self.votes.astype(rows.dtype, copy=False)[found].sum(axis=1)
        else:
            voters, votes = like(rows, self.rows), like(rows, self.votes)
            sizes = (voters * voters).sum(1)
            step = max(DISTANCES * (16 if is_torch(rows) else 1) // len(voters), 1)
            if not is_torch(rows):
                step = min(step, max(SEARCH_CELLS // len(voters), SEARCH_ROWS))
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
        even = counted + 1.0 / counted.shape[1]  # one more vote is spread evenly
        return xp.log(even / (of_each_row(np.add, counted)[:, None] + 1.0))


@dataclass(frozen=True)
class NearestMember(Member):
    """The nearest labelled rows, where there are enough of them."""

    n_voters: int

    name = "nearest labels"
    worth = 0.2  # the search takes most of a block's time
    words = "nearest labelled rows"
    model = Nearest

    @classmethod
    def candidates(cls, evidence: TrainingSet) -> list[Self]:
        """None where labels are few."""
        labels, n_features = evidence.problem.labels, evidence.rows.shape[1]
        effort = EFFORTS[evidence.problem.settings.effort]
        n_voters = count_voters(len(labels.rows), labels.n_rows, n_features, effort)
        return [cls(n_voters)] if n_voters else []

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """Voters as they are read and as they are kept, and a block's distances to them."""
        effort = EFFORTS[size.effort]
        voters = count_voters(size.n_labelled, size.n_rows, size.width, effort)
        itemsize = size.dtype.itemsize
        # A k-d tree has them in float64, and its nodes.
        in_tree = (8 * size.width + 32) * (size.width <= FEW_FEATURES)
        return Cost(
            fixed=voters * ((itemsize + 4) * size.width + in_tree),
            block=itemsize * DISTANCES * (voters > 0),
            seconds={"labels": voters * pair_seconds(size.width) * size.n_rows},
        )

    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Take labelled rows as voters, more than the other members learn from."""
        problem, part = evidence.problem, evidence.part
        labels, taken = problem.labels, self.n_voters
        chosen = part_of_labels(labels, taken, problem.settings.seed)
        same = len(chosen.rows) == len(part.rows) == len(labels.rows)
        rows = evidence.rows if same else to_numpy(problem.graph.take(chosen.rows))
        votes = chosen.one_hot(chosen.codes) if chosen.given is None else chosen.given
        dense = rows.toarray() if sparse.issparse(rows) else rows
        model = Nearest(np.asarray(dense, dtype=np.float32), votes.astype(np.float32))
        # Which voter a labelled row is itself, so as not to ask it about itself; -1: none.
        place = np.minimum(np.searchsorted(chosen.rows, part.rows), len(chosen.rows) - 1)
        own = np.where(chosen.rows[place] == part.rows, place, -1)
        held_out = model.of(evidence.rows, own)
        held_out[evidence.lone] = np.nan
        # Labelled rows that do not vote because rows are so many.
        most = min(len(labels.rows), MAX_LABELS, MAX_BYTES // (4 * rows.shape[1]))
        more = (most - taken) * pair_seconds(rows.shape[1]) * labels.n_rows
        left = ("labelled rows that vote", taken, most, more) if taken < most else None
        return MemberFit(model, held_out, model.of(evidence.sample_rows), left_out=left)


def count_voters(n_labelled: int, n_rows: int, n_features: int, effort: Effort) -> int:
    """Labelled rows that may vote on so many rows; 0 where labels are too few."""
    most = min(n_labelled, MAX_LABELS, MAX_BYTES // (4 * n_features))
    return 0 if most < MIN_LABELS else effort.voters_for(n_rows, (MIN_LABELS, most))
