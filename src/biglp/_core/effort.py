"""How much time a fit may take for how much accuracy: one line from "fast" to "best".

What costs time for every row (landmarks to compare it with, labelled rows that vote on it, trees to
walk down, members that say little) is chosen from counted operations, never by a clock: the same
rows get the same method on every machine, with any number of threads. Everything grows and shrinks
smoothly with the number of rows: as many comparisons as the effort allows, and never fewer for a
row than are needed to be good. Seconds in reports are operations times what each took on one core
of a server at 2.8 GHz.
"""

from __future__ import annotations

from dataclasses import dataclass

PAIR, PAIR_FEATURE = 2.2e-9, 0.02e-9
"""Seconds to compare a row with one other and keep the nearest five, and more for each feature."""
TREE_STEP = 0.8e-9
"""Seconds of one step down a tree, compiled."""


@dataclass(frozen=True)
class Effort:
    """What a fit may spend.

    Attributes
    ----------
    fine : int
        Landmarks up to which every other row of few is one.
    landmarks : (int, int)
        Fewest landmarks of very many rows, and most of all.
    landmark_pairs : int
        Comparisons of all rows with landmarks, above which these become fewer.
    voter_pairs : int
        Comparisons of all rows with labelled rows that vote, above which these become fewer.
    trees : int
    worth : float
        What a member's weight must be to be worth its time, in units of ``Member.worth``.
    """

    fine: int
    landmarks: tuple[int, int]
    landmark_pairs: int
    voter_pairs: int
    trees: int
    worth: float

    def landmarks_for(self, n_rows: int) -> int:
        """Landmarks of an anchor graph: a share of few rows, as many as are affordable of many."""
        most = self.affordable(self.landmark_pairs, n_rows, self.landmarks)
        return min(max(min(n_rows // 2, self.fine), n_rows // 10, 10), most)

    def voters_for(self, n_rows: int, within: tuple[int, int]) -> int:
        """Labelled rows that may vote on so many rows."""
        return self.affordable(self.voter_pairs, n_rows, within)

    @staticmethod
    def affordable(pairs: int, n_rows: int, within: tuple[int, int]) -> int:
        """How many others each row may be compared with."""
        least, most = within
        return max(min(pairs // n_rows, most), least)


EFFORTS = {
    "fast": Effort(
        fine=1000,
        landmarks=(500, 1000),
        landmark_pairs=60_000_000,
        voter_pairs=75_000_000,
        trees=16,
        worth=4.0,
    ),
    "balanced": Effort(
        fine=2000,
        landmarks=(1000, 4000),
        landmark_pairs=500_000_000,
        voter_pairs=300_000_000,
        trees=64,
        worth=1.0,
    ),
    "best": Effort(
        fine=4000,
        landmarks=(2000, 8000),
        landmark_pairs=1_000_000_000,
        voter_pairs=2_400_000_000,
        trees=128,
        worth=0.0,
    ),
}
"""By name. "balanced" is the default; docs/benchmarks.md has what each takes and brings."""
DEFAULT_EFFORT = "balanced"


def pair_seconds(n_features: int) -> float:
    """Seconds to compare a row with one other."""
    return PAIR + PAIR_FEATURE * n_features


def left_out(
    what: str, taken: int, of: int, seconds: float, points: float | None
) -> dict[str, str | int | float | None]:
    """A line of ``report_["left_out"]``.

    Parameters
    ----------
    what : str
    taken, of : int
        How many were taken, and how many a larger effort would take.
    seconds : float
        What the others would have cost.
    points : float or None
        Points of accuracy that they would have brought, about; None: unknown.
    """
    return {
        "what": what,
        "taken": taken,
        "of": of,
        "seconds": round(seconds, 2),
        "points": None if points is None else round(points, 1),
    }
