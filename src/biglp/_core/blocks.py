"""Row blocks: the unit of work.

A block is a description (where the rows are, first row, last row), cheap to send anywhere; the rows
are read where the work is done. A block also carries a memory: rows computed in one sweep that a
later sweep wants again (low-rank features, the iterate of GLNP). The memory stays with the worker
and is never sent; an algorithm must be able to rebuild what it finds missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4


class RowReader(Protocol):
    """What a block needs of the place its rows come from."""

    n_rows: int
    stay: bool

    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop`` (exclusive)."""

    def stored(self, start: int, stop: int) -> Any:
        """Return the same rows, in half precision where they are kept in it."""

    def as_read(self, stored: Any) -> Any:
        """Return what ``stored`` gave as ``read`` does."""


@dataclass(frozen=True, eq=False)
class Cut:
    """One cut of a source into blocks; the token tells workers elsewhere which cut it is."""

    n_blocks: int
    token: str = field(default_factory=lambda: uuid4().hex)


@dataclass(eq=False)
class Block:
    """Rows ``start`` to ``stop`` (exclusive) of a source."""

    source: RowReader
    index: int
    start: int
    stop: int
    memory: dict[str, Any] = field(default_factory=dict, repr=False)
    plan: Cut | None = field(default=None, repr=False)
    n_rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_rows = self.stop - self.start

    def rows(self, *, stored: bool = False) -> Any:
        """Read the block's rows; ``stored``: in half precision where they are kept in it."""
        if not (stored or self.source.stay):
            return self.source.read(self.start, self.stop)
        rows = self.memory.get("rows")
        if rows is None:
            rows = self.source.stored(self.start, self.stop)
            if self.source.stay:
                self.memory["rows"] = rows
        return rows if stored else self.source.as_read(rows)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the memory behind: it belongs to the worker that filled it."""
        return {**self.__dict__, "memory": {}}


def cut_rows(source: RowReader, rows_per_block: int) -> list[Block]:
    """Cut a source into blocks of ``rows_per_block`` rows, the last one shorter."""
    starts = range(0, source.n_rows, rows_per_block)
    plan = Cut(len(starts))
    return [
        Block(source, index, start, min(start + rows_per_block, source.n_rows), plan=plan)
        for index, start in enumerate(starts)
    ]
