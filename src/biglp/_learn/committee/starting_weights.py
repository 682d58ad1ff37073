"""Weights w₀ that members and class prior have where labels are too few to tell.

They minimise the log-loss of all together, without any weights found for the single problem, over
thirteen data sets at three sizes and eight numbers of labels; fitted to all sets of a kind but one,
they lose a quarter of a point of accuracy on that one (docs/accuracy.md). On tables a handful of
labels says most through a straight line and trees, on images and words through what the unlabelled
rows know. Members that start at 0 get a weight when held-out labels are in their favour.
"""

from __future__ import annotations

ROWS = ("table", "clusters", "pixels", "text", "embedding")
"""Kinds of rows: features of any kind, such whose graph is in clusters, principal components of
many features of one scale, words, and other rows of length 1."""
Starts = dict[str, tuple[float, float]]
"""Starting weights by kind of rows, with one label a class and with plenty."""


def everywhere(weight: float) -> Starts:
    """One starting weight for all kinds of rows."""
    return dict.fromkeys(ROWS, (weight, weight))


STARTING_WEIGHTS: dict[str, Starts] = {
    name: dict(zip(ROWS, weights, strict=True))
    for name, weights in {
        #                  table          clusters      pixels        text          embedding
        "prior":          [(1.3, 1.3),   (1.3, 1.3),   (0.7, 0.7),   (0.7, 0.7),   (0.7, 0.7)],
        "spread 0.9":     [(0.06, 0.01), (0.35, 0.6),  (0.0, 0.3),   (0.02, 0.03), (0.1, 0.2)],
        "spread 0.99":    [(0.01, 0.01), (0.7, 0.7),   (1.15, 1.2),  (0.15, 0.3),  (0.45, 0.55)],
        "logistic":       [(0.12, 0.2),  (0.2, 0.05),  (0.0, 0.55),  (0.0, 0.05),  (0.0, 0.35)],
        "seeded k-means": [(0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0),   (0.3, 0.75),  (0.3, 0.4)],
        "class means":    [(0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0)],
        "forest":         [(0.0, 0.22),  (0.5, 0.95),  (0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0)],
        "nearest labels": [(0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0),   (0.0, 0.0)],
    }.items()
}  # fmt: skip
"""By the member's name in the report; one that is not here says its own (``Member.starts``)."""
