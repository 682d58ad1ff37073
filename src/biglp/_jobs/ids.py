"""A job's side of labels and IDs: where they are, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._core.memory import parse_memory
from biglp._jobs.inputs import LABEL_OPTIONS
from biglp._labels.reading import LabelInput
from biglp._rows.encoding import some

if TYPE_CHECKING:
    from biglp._rows import InputFiles
    from biglp._tables.side_columns import RowColumn


class RowIdsMixin:
    """What follows from a job's ``id_column`` and, where it has them, its labels."""

    if TYPE_CHECKING:
        id_column: str | None
        reading: dict[str, Any]

        @property
        def rows(self) -> InputFiles: ...

        @property
        def memory_given(self) -> str | int: ...

        @property
        def format(self) -> str: ...

    @cached_property
    def label_input(self) -> LabelInput:
        """Where labels and IDs are, if anywhere."""
        named = {name: getattr(self, name) for name in LABEL_OPTIONS if hasattr(self, name)}
        memory = parse_memory(self.memory_given)
        return LabelInput(self.rows, **named, reading=dict(self.reading), memory=memory)

    @property
    def row_ids(self) -> RowColumn | None:
        """The IDs of the rows, where the user says which column holds them."""
        return self.label_input.ids

    def check_inputs(self) -> None:
        """Raise when a file of the rows or labels is no longer what it was."""
        self.rows.check_unchanged()
        self.label_input.check_unchanged()

    def told_of_ids(self) -> list[str]:
        """Say that there is no place for IDs where that is so."""
        if self.id_column is None or self.format != "npy":
            return []
        return [
            "IDs are not written: .npy files hold answers only, in the order of the rows. "
            "--output-format parquet, csv or jsonl has a column for them."
        ]

    @contextmanager
    def ids_in_errors(self) -> Iterator[None]:
        """Say in errors about rows which IDs these have."""
        try:
            yield
        except BadRowsError as error:
            if error.rows and self.row_ids is not None:
                ids = some(self.row_ids.at(np.array(error.rows)))
                error.add_note(f"In column {self.id_column!r} these rows are {ids}.")
            raise
