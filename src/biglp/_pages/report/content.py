"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biglp._fit.evidence import Evidence


@dataclass(frozen=True)
class Step:
    """A way to go on: what for, and what to type."""

    why: str
    command: str


@dataclass(frozen=True)
class Content:
    """Facts behind a report.

    Attributes
    ----------
    title : str
        What the rows are called.
    facts : mapping
        As in ``summary.json``: ``rows``, ``labelled_rows``, ``given`` and ``found`` (of each
        class), ``settings``, ``seconds``, ``peak_memory``, ``steps``, ``versions``, ``command``,
        ``warnings`` and ``told``. What is not there is not shown.
    classes : sequence of str
        Names of the classes, in the order of their codes; empty for measured targets.
    evidence : Evidence or None
        A sample of the rows.
    beside : list of dict
        For each of the evidence's examples what people know of the row: its ID, text, columns.
    feature_names : sequence of str or None
        Names of the features, where they have names.
    going_on : sequence of Step
    missing : sequence of str
        Sentences on what is not shown, and why.
    values : ndarray or None
        Answers of a regression.
    """

    title: str
    facts: Mapping[str, Any]
    classes: Sequence[str] = ()
    evidence: Evidence | None = None
    beside: Sequence[Mapping[str, str]] = ()
    feature_names: Sequence[str] | None = None
    going_on: Sequence[Step] = ()
    missing: Sequence[str] = ()
    values: Any = None
    settings: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Find the settings, which nearly all parts look at."""
        object.__setattr__(self, "settings", self.facts.get("settings", {}))
