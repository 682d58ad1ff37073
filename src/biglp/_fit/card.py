"""What a run needs of a card's memory: a second budget beside the computer's.

Blocks in work come first, then the rows, which stay on the card when all of them fit, then their
features. What does not fit is brought again, or computed again, in every sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

from biglp._core.blocks import MIN_BLOCK_ROWS
from biglp._core.errors import MemoryBudgetError
from biglp._core.memory import card_memory, format_bytes
from biglp._core.shape import Shape
from biglp._engines import Engine
from biglp._lowrank.base import Costs

CARD_SHARE = 0.8
"""Share of a card's free memory that may be taken: the rest is for the library's own buffers."""
LIBRARY_BYTES = 512 << 20
"""Handles and workspaces of torch's matrix products, and what trees and nearest labels hold."""
BLOCK_SHARE = 0.25
"""Share of the budget that blocks in work may take, where not all of the rest can stay."""
BLOCK_BYTES, BLOCK_BYTES_FROM_HOST = 56 << 30, 8 << 30
"""Working set of a block, at most: few launches where the rows are there already, several blocks
where one is copied while another is worked on."""


@dataclass(frozen=True)
class CardPlan:
    """How a card's memory is shared out, in bytes.

    Attributes
    ----------
    budget : int
        What may be taken.
    rows_each : int
        Rows a block.
    workers : int
        Blocks in work at once.
    blocks, rows, features : int
        Blocks in work; rows and features that stay, or 0.
    """

    budget: int
    rows_each: int
    workers: int
    blocks: int
    rows: int
    features: int

    @property
    def expected(self) -> int:
        """Memory that the run will take."""
        return LIBRARY_BYTES + self.blocks + self.rows + self.features

    def describe(self) -> dict[str, int | bool]:
        """For the report."""
        return {
            "gpu_memory": self.budget,
            "planned": self.expected,
            "rows_stay": self.rows > 0,
            "features_stay": self.features > 0,
            "rows_per_block": self.rows_each,
        }


def plan_card(
    device: str, given: int | None, costs: Costs, shape: Shape, engine: Engine
) -> CardPlan | None:
    """Share out a card's memory; None where there is no card.

    Parameters
    ----------
    device : str
        A device of torch.
    given : int or None
        What may be taken; None: a share of what is free.
    costs : Costs
    shape : Shape
    engine : Engine
        Its processes may share the card, each with its share of the rows.

    Raises
    ------
    MemoryBudgetError
        Naming the smallest budget that works.
    """
    free = card_memory(device)
    if free is None:
        return None
    budget = min(int(CARD_SHARE * free) if given is None else given, free)
    budget //= engine.n_on_a_card
    workers = 1 if shape.card_row == 0 else 2
    a_row = costs.row * workers
    least = LIBRARY_BYTES + costs.device + MIN_BLOCK_ROWS * a_row
    if budget < least:
        raise MemoryBudgetError(
            f"gpu_memory={format_bytes(budget)} of {format_bytes(free)} that are free on {device} "
            f"is too little for {shape.n_features:,} features: the smallest blocks need "
            f"{format_bytes(least)}. Give at least that (--gpu-memory {-(-least >> 20)}MB), or use "
            "device='cpu'."
        )
    left = budget - LIBRARY_BYTES - costs.device
    n_own = -(-shape.kept_rows // (engine.n_sharing if engine.keeps_shares else 1))
    stays = (shape.card_row + costs.stored_row) * n_own
    room = left - stays if stays <= (1.0 - BLOCK_SHARE) * left else BLOCK_SHARE * left
    most = min(BLOCK_BYTES if shape.card_row == 0 else BLOCK_BYTES_FROM_HOST, room)
    rows_each = min(max(int(most) // a_row, MIN_BLOCK_ROWS), shape.n_rows)
    rows_each = -(-shape.n_rows // -(-shape.n_rows // rows_each))  # blocks of one size
    left -= rows_each * a_row
    rows = shape.card_row * n_own
    rows = rows if rows <= left else 0
    features = costs.stored_row * n_own
    features = features if features <= left - rows else 0
    return CardPlan(budget, rows_each, workers, rows_each * a_row + costs.device, rows, features)
