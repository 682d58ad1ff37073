"""A map of the rows beside their answers: where each is, its label, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from biglp._sinks.base import MAP, Answers, FileSink
from biglp._sinks.parquet import ParquetSink


class MapSink(ParquetSink):
    """A table of ``row``, ``id``, ``x``, ``y``, ``label``, ``confidence`` and ``doubt``.

    It takes answers that have the places of the rows in their last two columns, and passes them on
    to the sink that they are for. The ID is the row's number where rows have none; doubt is 1 less
    the difference of the two likeliest classes.

    Parameters
    ----------
    answers : FileSink
        Takes the answers.
    folder : Path
        Folder of the map.
    """

    wants_places = True
    more_columns = ("x", "y", "doubt")

    def __init__(self, answers: FileSink, folder: Path) -> None:
        super().__init__(folder / MAP, answers.n_rows, answers.classes, ("label", "confidence"))
        self.answers = answers
        self.ids = answers.ids

    @property
    def names(self) -> list[str]:
        """Names of the files that a commit leaves."""
        return [*self.answers.names, *super().names]

    def resumable(self) -> bool:
        """Whether all answers and places of an interrupted run are there."""
        return self.answers.resumable() and super().resumable()

    def open(self, *, resume: bool = False) -> None:
        """Make room for both."""
        self.answers.open(resume=resume)
        super().open(resume=resume)

    def write(self, start: int, answers: Answers) -> None:
        """Take the answers and places of the rows from ``start`` on."""
        assert isinstance(answers, np.ndarray)
        shares = np.ascontiguousarray(answers[:, :-2])
        self.answers.write(start, shares)
        ordered = np.partition(shares, -2, axis=1)
        doubt = 1.0 - (ordered[:, -1] - ordered[:, -2])
        places = {"x": answers[:, -2], "y": answers[:, -1]}
        super().write(start, {"probabilities": shares, **places, "doubt": doubt})

    def sync(self) -> None:
        """Force what was written to disk."""
        self.answers.sync()
        super().sync()

    def commit(self) -> None:
        """Make both final."""
        self.answers.commit()
        super().commit()

    def abort(self) -> None:
        """Leave nothing behind."""
        self.answers.abort()
        super().abort()

    def _arranged(self, table: Any) -> Any:
        if self.ids is None:
            table = table.append_column("id", table.column("row"))
        else:
            names = ["id", *table.column_names[1:]]
            table = table.rename_columns(names)
        return table.select(["row", "id", "x", "y", "label", "confidence", "doubt"])
