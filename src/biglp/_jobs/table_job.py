"""Jobs whose result is one small table: printed, or written to a CSV file."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.memory import PeakMemory
from biglp._core.progress import Progress, StepClock
from biglp._engines import Engine, make_engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import StorePath, as_place, work_folder
from biglp._jobs.job import Job
from biglp._jobs.results import RUN_FOLDER
from biglp._labels.tools import TASK_FORMATS, Tasks


@dataclass(frozen=True)
class TableJob(Job):
    """A job that leaves nothing but a table behind, and cannot be resumed."""

    show: tuple[str, ...] = ()  # columns of the rows' table that stand beside

    resumable = False
    verb: ClassVar[str]  # the command
    columns: ClassVar[tuple[str, ...]]  # of the table

    def with_columns(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Lines of the table with the IDs of their rows, and what else people want to see."""
        ids = self.label_input.ids
        wanted = tuple(dict.fromkeys((*([] if ids is None else [ids.name]), *self.show)))
        if not wanted:
            return lines
        side_table = self.label_input.side_table
        side_table.check("show", *self.show)
        rows = np.array([line["row"] for line in lines], dtype=np.int64)
        taken = side_table.table(wanted, rows).to_pydict()
        return [
            {name: taken[name][index] for name in wanted if name not in self.show}
            | line
            | {name: taken[name][index] for name in self.show}
            for index, line in enumerate(lines)
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
    def neighbour(self) -> Any:
        """A file or folder beside which every process can write, where no table is named."""

    @property
    def scratch(self) -> Path:
        """Where text and Parquet are converted."""
        neighbour = self.table or self.neighbour
        if isinstance(neighbour, StorePath):
            return work_folder(neighbour, self.cache)
        return Path(neighbour.with_name(f".{neighbour.name}.{self.verb}{RUN_FOLDER}"))

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
        with (
            make_engine(self.engine, self.threads) as engine,
            self.copying(self.scratch, clock),
        ):
            engine.progress = clock
            identity, folder = engine.once(self.identity), self.scratch.absolute()
            run = RunFolder(folder, identity, resume=False, once=engine.once)
            try:
                with PeakMemory() as peak, self.watched() as messages:
                    names, facts = self.work(engine, run)
            finally:
                if engine.is_root:
                    run.remove()
                run.close()
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
        table = self.table
        if table is None:
            return []

        def write() -> None:
            ids = [] if self.id_column is None else [self.id_column]
            columns = (*ids, *self.columns, *self.show)
            tasks = Tasks(lines, columns, self.show, self.id_column)
            with atomic_write(table) as file:
                file.write(TASK_FORMATS[self.table_format](tasks).encode())

        engine.once(write)
        return [str(table)]
