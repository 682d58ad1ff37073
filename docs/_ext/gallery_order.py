"""The order of examples on the gallery's page: from the first look to the inside."""

from __future__ import annotations

ORDER = [
    "moons_and_alpha",
    "digits_few_labels",
    "text_from_zero_labels",
    "table_as_it_is",
    "suggest_against_random",
    "wrong_labels",
    "calibration",
    "when_unlabelled_rows_hurt",
    "imbalanced_700k",
    "larger_than_memory",
    "same_bits",
    "regression",
    "own_graph",
    "glnp_convergence",
]


def in_order(name: str) -> int:
    """Place of an example's file; new ones come last."""
    known = name.removesuffix(".py")
    return ORDER.index(known) if known in ORDER else len(ORDER)
