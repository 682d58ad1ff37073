"""Jobs whose result is one small table: printed, or written to a CSV file."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.memory import PeakMemory
from biglp._core.progress import Progress, StepClock
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import StorePath, as_place, work_folder
from biglp._jobs.job import Job, recorded_warnings
from biglp._jobs.results import RUN_FOLDER
from biglp._labels.tools import TASK_FORMATS, Tasks


@dataclass(frozen=True)
class TableJob(Job):
    """A job that leaves nothing but a table behind, and cannot be resumed.

    Attributes
    ----------
    verb : str
        Its command.
    columns : tuple of str
        Columns of the table.

    Parameters
    ----------
    show : tuple of str
        Columns of the rows' table that it has beside.
    """

    show: tuple[str, ...] = ()

    verb: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]

    @property
    def all_columns(self) -> tuple[str, ...]:
        """Columns of the table, that of the rows' IDs first."""
        ids = [] if self.id_column is None else [self.id_column]
        return (*ids, *self.columns, *self.show)

    def with_columns(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Lines of the table with the IDs of their rows, and what else people want to see."""
        ids = self.row_ids
        wanted = tuple(dict.fromkeys((*([] if ids is None else [ids.name]), *self.show)))
        if not wanted:
            return lines
        beside = self.label_input.side_table
        beside.check("show", *self.show)
        taken = beside.take(wanted, np.array([line["row"] for line in lines], dtype=np.int64))
        return [
            {name: taken[name][place] for name in wanted if name not in self.show}
            | line
            | {name: taken[name][place] for name in self.show}
            for place, line in enumerate(lines)
        ]

    @property
    def table_format(self) -> str:
        """Format of the table: a name in ``TASK_FORMATS``."""
        return "csv"

    @property
    def table(self) -> Any:
        """File that the table is written to; None when it is printed."""
        return None if self.output == Path() else as_place(self.output)

    @property
    @abstractmethod
    def beside(self) -> Any:
        """A file or folder beside which every process can write."""

    @property
    def scratch(self) -> Path:
        """Where text and Parquet are converted."""
        beside = self.table or self.beside
        if isinstance(beside, StorePath):
            return work_folder(beside, self.cache)
        return beside.with_name(f".{beside.name}.{self.verb}{RUN_FOLDER}")

    def refuse_to_replace(self) -> None:
        """Refuse an output that exists already, unless it may be replaced."""
        if self.table is not None and self.table.exists() and not self.overwrite:
            raise ParameterError(
                f"{self.table} exists already. Give --overwrite to replace it, or another output "
                "(-o)."
            )

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Do the work, write the table, return what was found."""
        clock, began = StepClock(progress), time.perf_counter()
        with self.make_engine() as engine, self.copying(self.scratch, clock):
            engine.progress = clock
            identity = engine.once(self.identity)
            with (
                _scratch_folder(self.scratch, identity, engine) as run,
                PeakMemory() as peak,
                recorded_warnings() as messages,
                self.ids_in_errors(),
            ):
                names, facts = self.work(engine, run)
        seconds = time.perf_counter() - began
        return {
            "command": self.command,
            **facts,
            "seconds": round(seconds, 3),
            "rows_per_second": round(facts["rows"] / seconds),
            "peak_memory": peak.peak,
            "warnings": messages,
            "files": names,
        }

    def publish(self, engine: Engine, lines: list[dict[str, Any]]) -> list[str]:
        """Write the table where a file was named, whole or not at all; return its name."""
        engine.once(self.check_inputs)
        if self.table is None:
            return []
        engine.once(lambda: self._write(lines))
        return [str(self.table)]

    def _write(self, lines: list[dict[str, Any]]) -> None:
        assert self.table is not None
        tasks = Tasks(lines, self.all_columns, self.show, self.id_column)
        with atomic_write(self.table) as file:
            file.write(TASK_FORMATS[self.table_format](tasks).encode())


@contextmanager
def _scratch_folder(folder: Path, identity: dict[str, Any], engine: Engine) -> Iterator[RunFolder]:
    run = RunFolder(folder.absolute(), identity, resume=False, once=engine.once)
    try:
        yield run
    finally:
        if engine.is_root:
            run.remove()
        run.close()
