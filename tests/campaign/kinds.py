"""Kinds of attack. A case is a kind and a seed: the same two always do the same."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Case = Callable[[int, Path], int]
"""Takes a seed and an empty folder; returns how many things it tried, raises when one failed."""


@dataclass(frozen=True)
class Kind:
    name: str
    where: str
    """Module and function."""
    share: float
    """Of the campaign's time."""
    seconds: int
    """After which a case counts as hanging."""
    counted: str
    quick: int = 0
    """Cases that CI runs, with fewer attempts each."""
    asked: int = 0
    """What a campaign of an hour must have tried; kinds that are behind go first."""

    def load(self) -> Case:
        module, _, name = self.where.partition(":")
        case: Case = getattr(importlib.import_module(f"campaign.{module}"), name)
        return case


_ALL = (
    Kind("kill", "kills:killed", 8, 400, "kills -9, at a moment or a call to the system", 1, 100),
    Kind("term", "kills:terminated", 4, 400, "SIGTERM", 1, 40),
    Kind("int", "kills:interrupted", 5, 400, "SIGINT", 0, 40),
    Kind("disk", "kills:disk_full", 2, 400, "full disks", 1),
    Kind("changed", "kills:changed_input", 2, 400, "inputs changed between kill and resume"),
    Kind("ranks", "lost:ranks", 11, 400, "MPI ranks killed or told to end", 0, 40),
    Kind("workers", "lost:workers", 8, 500, "Dask workers killed", 0, 40),
    Kind("files", "mutated:files", 20, 300, "mutated files, of every format", 31, 20_000),
    Kind("models", "mutated:models", 3, 300, "mutated model files", 1),
    Kind("arrays", "arrays:problems", 24, 600, "arrays and parameters", 2, 50_000),
    Kind("hostile", "hostile:files", 1, 300, "hostile files", 19),
    Kind("budgets", "budgets:kept", 14, 500, "memory budgets", 0, 60),
    Kind("sharing", "sharing:at_once", 2, 400, "processes that share a cache or an output", 1),
)
KINDS = {kind.name: kind for kind in _ALL}
HOUR = 3600.0
