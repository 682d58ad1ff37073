"""The last sweep: an answer for every row, written to a sink where it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from biglp._core.arrays import Array, Rows, like, to_numpy
from biglp._core.blocks import Block
from biglp._engines import Engine
from biglp._files.runfolder import Checkpoint, Journal, Tally
from biglp._labels.labels import Labels, OwnLabels
from biglp._labels.targets import Targets
from biglp._lowrank.features import Features
from biglp._output import Sink


class Answerer(Protocol):
    """What the sweep asks of an answer; :class:`biglp._answers.base.Answer` is the base of all."""

    @property
    def needs_rows(self) -> bool:
        """Whether it looks at prepared rows beside their features."""

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """What is said of each row, and how many rows no label reaches."""

    def finish(self, outputs: Array) -> Array:
        """What is written of these outputs."""

    def count(self, answers: Array) -> dict[int, int]:
        """Rows of each class code that occurs."""


@dataclass(frozen=True)
class Answered:
    """What the sweep found, besides the answers in the sink.

    Attributes
    ----------
    n_unreached : int
        Rows that no label reaches.
    counts : dict of int to int
        Rows of each class code that occurs.
    """

    n_unreached: int
    counts: dict[int, int]


@dataclass(frozen=True)
class AnswerSweep:
    """Answers block by block.

    Attributes
    ----------
    features : Features
    answer : Answerer
    labels : Labels or None
        Labels of training rows, which add to their own answers; None where rows are new.
    clamp : bool
        Whether labelled rows keep exactly the labels they were given.
    """

    features: Features
    answer: Answerer
    labels: Labels | Targets | None = None
    clamp: bool = False

    def run(
        self, engine: Engine, blocks: Sequence[Block], sink: Sink, checkpoint: Checkpoint
    ) -> Answered:
        """Write the answers of all blocks but those that the checkpoint knows to be written."""
        finished = checkpoint.finished_blocks()
        todo = [block for block in blocks if block.start not in finished]
        tallies = list(finished.values())
        if sink.in_memory and not engine.shares_memory:
            # The answers are made elsewhere: they are sent here, and put into the sink.
            found = engine.map_blocks(self.answers_of, todo, label="labels")
            for block, (tally, answers) in zip(todo, found, strict=True):
                sink.write(block.start, answers)
                tallies.append(tally)
        else:
            journal = checkpoint.journal(sink.sync)
            try:
                written = partial(self.write_block, sink=sink, journal=journal)
                tallies += engine.map_blocks(written, todo, label="labels")
            finally:
                if journal is not None:
                    journal.close()
        counts: dict[int, int] = {}
        for _, part in tallies:
            for code, count in part.items():
                counts[code] = counts.get(code, 0) + count
        return Answered(sum(unreached for unreached, _ in tallies), dict(sorted(counts.items())))

    def write_block(self, block: Block, sink: Sink, journal: Journal | None) -> Tally:
        """Write the answers of a block; return what is to be known about it."""
        tally, answers = self.answers_of(block, as_they_are=sink.takes_tensors)
        sink.write(block.start, answers)
        if journal is not None:
            journal.note(block.start, tally)
        return tally

    def answers_of(self, block: Block, as_they_are: bool = False) -> tuple[Tally, Array]:
        """Answers of a block, and what is to be known about it.

        ``as_they_are`` leaves them on the device where they were made.
        """
        rows = block.rows() if self.answer.needs_rows else None
        features = self.features.to_answer(block)
        own = None if self.labels is None else self.labels.own(block.start, block.stop)
        outputs, unreached = self.answer.outputs(features, rows, own)
        answers = self.answer.finish(outputs if as_they_are else to_numpy(outputs))
        if self.clamp and own is not None:
            answers[own.rows, : own.shares.shape[1]] = like(answers, own.shares)
        return (unreached, self.answer.count(answers)), answers
