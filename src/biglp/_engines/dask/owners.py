"""Which worker works on what, as the client of remote workers sees it.

The client remembers which worker did each run and in which sweep, so that a block goes back to the
worker that holds its memory, and an old memory is never taken for a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from biglp._core.blocks import Block
from biglp._engines.base import Run
from biglp._engines.dask.worker import NEVER, Batch, Outcome, Piece, Sweep

_MOST_BATCHES = 16
_SECONDS_PER_BATCH = 1.0
"""Aimed length of a batch; there are at most 16 for each thread of a worker."""


@dataclass
class PlanState:
    """What the client knows of one plan: its source, and which worker did what in which sweep."""

    source: Any
    owners: dict[int, str] = field(default_factory=dict)  # run → worker
    last_sweeps: dict[int, int] = field(default_factory=dict)  # block → sweep
    batches_per_thread: int = 2

    def share(self, runs: list[Run], threads: dict[str, int]) -> dict[tuple[str, int], list[Run]]:
        """Give each run to its owner, or to the least busy worker when the owner is gone."""
        if not self.owners:
            slots = [worker for worker in sorted(threads) for _ in range(threads[worker])]
            numbers = [Run(number, runs[0].n_runs, []) for number in range(runs[0].n_runs)]
            self.owners = {run.number: slots[run.owner(len(slots))] for run in numbers}
        load = dict.fromkeys(threads, 0.0)
        for owner in self.owners.values():
            if owner in load:
                load[owner] += 1.0 / threads[owner]
        shares: dict[tuple[str, int], list[Run]] = {}
        for run in runs:
            owner = self.owners[run.number]
            if owner not in load:
                owner = self.owners[run.number] = min(load, key=lambda worker: load[worker])
                load[owner] += 1.0 / threads[owner]
            shares.setdefault((owner, threads[owner]), []).append(run)
        return shares

    def batches(
        self, sweep: Sweep, shares: dict[tuple[str, int], list[Run]]
    ) -> list[tuple[str, Batch]]:
        """Cut each worker's share into a few batches; return them with their owners."""
        batches: list[tuple[str, Batch]] = []
        for (owner, n_threads), runs in shares.items():
            count = min(len(runs), n_threads * self.batches_per_thread)
            for i in range(count):
                part = runs[i * len(runs) // count : (i + 1) * len(runs) // count]
                numbers = [run.number for run in part]
                pieces = [[self._piece(block) for block in run.blocks] for run in part]
                batch = Batch(len(batches), sweep, numbers, pieces)
                batches.append((owner, batch))
        return batches

    def remember(self, batches: list[Batch], outcomes: list[Outcome], seconds: float) -> None:
        """Note where the memories are after a sweep, and how finely to cut the next one."""
        places = {number: place for o in outcomes for number, place in o.places.items()}
        for batch in batches:
            self.owners.update(dict.fromkeys(batch.run_numbers, places[batch.number]))
            sweep = batch.sweep.number
            self.last_sweeps.update((piece.number, sweep) for piece in batch.pieces)
        # Short sweeps are best in one batch a thread; long ones show progress, lose less with a
        # worker and can be shared out again when they are cut.
        self.batches_per_thread = int(min(max(seconds / _SECONDS_PER_BATCH, 1), _MOST_BATCHES))

    def _piece(self, block: Block) -> Piece:
        last_sweep = self.last_sweeps.get(block.index, NEVER)
        return Piece(block.index, block.start, block.stop, last_sweep)
