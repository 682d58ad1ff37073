"""What all jobs have in common: from an input that was named to published files."""

from __future__ import annotations

import csv
import io
import json
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from biglp._core.device import Device
from biglp._core.errors import BadRowsError, BigLPWarning, LabelError, ParameterError
from biglp._core.memory import PeakMemory, give_back, parse_memory
from biglp._core.parameters import flags_of
from biglp._core.progress import Progress, StepClock, versions
from biglp._engines import Engine, make_engine
from biglp._files.copies import copying_to
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import StorePath, as_place
from biglp._fit.model import Model
from biglp._graph.graph import Graph
from biglp._jobs.identity import settle
from biglp._jobs.results import CACHE, STAGE, SUMMARY, Destination, finish_moves, publish
from biglp._labels.codes import Marks
from biglp._labels.reading import LabelInput
from biglp._output import TABLES, FileSink, file_sink, table_ending
from biglp._rows import InputFiles, Source, as_source
from biglp._rows.format import without_pyarrow
from biglp._rows.source import explained_model, some

if TYPE_CHECKING:
    pass

FORMATS = ("auto", "npy", "parquet", "csv", "jsonl")
STDIN_FOLDER, STDOUT_FOLDER = "biglp-stdin-", "biglp-stdout-"
"""How temporary folders begin for rows from standard input, and for answers to standard output."""


@dataclass(frozen=True)
class Job(ABC):
    """An input, an output, an engine, and a way to go on after an interruption."""

    inputs: tuple[str, ...]  # files, folders, patterns, or one sim:…
    output: Any  # folder or file for the results, here or in a store
    reading: dict[str, Any] = field(default_factory=dict)  # ReadOptions but cache and progress
    labels: tuple[str, ...] = ()  # files; a later one counts more, all of them more than the column
    label_column: str | None = None  # in the table of the rows, or in the files of labels
    weight_column: str | None = None  # in the same table
    id_column: str | None = None  # results carry it, and labels may be joined by it
    unlabelled: Marks = None  # what marks a row without a label, beside empty, null and NaN
    metadata: Any = None  # a table with a line for each row: the columns above are in it
    cache: str | None = None  # for converted rows, copies and work for stores; or "never"
    outputs: tuple[str, ...] = ("label",)  # and "confidence", "probabilities"
    top: int | None = None  # likeliest classes to write the probabilities of, instead of all
    output_format: str = "auto"
    engine: Any = "threads"
    threads: int | None = None  # of each rank with engine "mpi"
    resume: bool = False
    overwrite: bool = False
    command: str | None = None  # what the user typed, for the summary

    @cached_property
    def rows(self) -> InputFiles:
        """The input, looked up when it is first asked for."""
        return InputFiles(self.inputs[0] if len(self.inputs) == 1 else list(self.inputs))

    @cached_property
    def label_input(self) -> LabelInput:
        """Where labels and IDs are, if anywhere."""
        return LabelInput(
            self.rows,
            self.labels,
            self.label_column,
            self.weight_column,
            self.id_column,
            self.unlabelled,
            dict(self.reading),
            self.metadata,
            parse_memory(self.memory_given),
        )

    @property
    def destination(self) -> Destination:
        """Where the results go."""
        return Destination(as_place(self.output), self.cache)

    @property
    def format(self) -> str:
        """Format of the answers."""
        if self.output_format not in FORMATS:
            allowed = ", ".join(FORMATS)
            raise ParameterError(
                f"output_format={self.output_format!r} is not known; use one of {allowed}."
            )
        if self.destination.is_file:
            return TABLES.get(table_ending(self.destination.path.name) or "", "npy")
        if self.output_format == "auto":
            return "parquet" if self.rows.is_table else "npy"
        return self.output_format

    @property
    @abstractmethod
    def memory_given(self) -> str | int:
        """Memory budget, as it was given."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What the run is: the same again may be resumed."""

    @abstractmethod
    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Stage all files; return their names and facts for the summary."""

    def stage_pages(self, run: RunFolder, summary: dict[str, Any]) -> None:  # noqa: B027
        """Stage what is made from the summary, on one process; nothing for most jobs."""

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Run to the end, or see that the run has ended already; return its summary."""
        destination, clock = self.destination, StepClock(progress)

        def begin() -> tuple[dict[str, Any], dict[str, Any] | None]:
            identity = self.identity()
            ended = settle(destination, identity, resume=self.resume, overwrite=self.overwrite)
            if ended is None:
                destination.mark()
            return identity, ended

        def end(names: list[str], summary: dict[str, Any]) -> dict[str, Any]:
            self.check_inputs()
            self.stage_pages(run, summary)
            with atomic_write(run.folder / STAGE / SUMMARY) as file:
                file.write((json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode())
            last = [] if destination.is_file else [SUMMARY]
            return publish(run, destination, [*names, *last])

        # The engine comes first: an error after that ends all its processes with one message.
        with (
            make_engine(self.engine, self.threads) as engine,
            self.copying(destination.run_folder, clock),
        ):
            engine.progress = clock
            try:
                identity, ended = engine.once(begin)
            except BaseException:
                if engine.is_root:
                    destination.forget()
                raise
            if ended is not None:
                if engine.is_root:
                    destination.forget()
                return {**ended, "nothing_to_do": True}
            folder = destination.run_folder
            folder = folder if engine.shares_memory else folder.absolute()
            run = RunFolder(folder, identity, resume=self.resume, once=engine.once)
            if isinstance(destination.path, StorePath):
                clock.say(
                    f"unfinished work is in {folder}; results go to {destination.path} at the end"
                )
            try:
                began = time.perf_counter()
                done: dict[str, Any] | None = engine.once(lambda: finish_moves(run))
                if done is not None:  # it was killed while its files were getting their names
                    return done
                with PeakMemory() as peak, recorded_warnings() as messages, self.ids_in_errors():
                    names, facts = self.work(engine, run)
                seconds = time.perf_counter() - began
                summary = {
                    "command": self.command,
                    **facts,
                    "seconds": round(seconds, 3),
                    "rows_per_second": round(facts["rows"] / seconds),
                    "steps": [step.as_json() for step in clock.steps.values()],
                    "peak_memory": peak.peak,
                    "warnings": messages,
                    "resumed": self.resume,
                    "files": {
                        name.partition(".")[0]: str(destination.final(name)) for name in names
                    },
                    "versions": versions(),
                    "run": identity,
                }
                return engine.once(lambda: end(names, summary))
            except BaseException as error:
                if engine.is_root:
                    wrong = isinstance(error, LabelError | ParameterError)
                    destination.tidy(run.lock, again=not wrong)
                raise
            finally:
                run.close()

    def copying(self, folder: Path | None, progress: Progress) -> AbstractContextManager[Any]:
        """Have files of stores copied to the cache folder, or else to the run folder, if any."""
        cache = None if self.cache in (None, "never") else Path(self.cache)
        return copying_to(cache or folder, progress, parse_memory(self.memory_given))

    def check_inputs(self) -> None:
        """Raise when a file of the rows or labels is no longer what it was."""
        self.rows.check_unchanged()
        self.label_input.check_unchanged()

    def open_source(self, engine: Engine, run: RunFolder, **more: Any) -> Source:
        """Open the rows; where they must be converted, one process does it, in the run folder.

        Columns of labels, weights and IDs are no features.
        """
        others = engine.once(lambda: self.label_input.not_features)
        options = {**self.reading, **others, **more, "progress": engine.progress}
        options["cache"] = self.cache or str(run.folder / CACHE)
        source = engine.once(lambda: as_source(self.rows, **options))
        give_back()  # what decoding took is wanted for something else now
        return source

    def open_sink(
        self, engine: Engine, run: RunFolder, classes: np.ndarray, n_rows: int, *, map: bool = False
    ) -> FileSink:
        """Make room for the answers in the run folder, or open those of an interrupted run.

        With ``map`` also for the positions of the rows.
        """
        path = stage = run.folder / STAGE
        if self.format != "npy":
            ending = table_ending(self.destination.path.name) if self.destination.is_file else None
            path = stage / f"labels{ending or '.' + self.format}"
        sink = file_sink(path, n_rows, classes, self.outputs, self.top)
        sink.ids = engine.once(lambda: self.label_input.ids)
        if map:
            try:
                from biglp._output.table import MapSink  # needs pyarrow
            except ImportError as error:
                raise without_pyarrow("map.parquet", error) from error
            sink = MapSink(sink, stage)
        finished = bool(run.finished_blocks())
        if finished and not engine.once(sink.resumable):
            run.forget_blocks()
            finished = False
        engine.once(lambda: sink.open(resume=finished))
        return sink

    def notes_on_ids(self) -> list[str]:
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
            if error.rows and self.label_input.ids is not None:
                ids = some(self.label_input.ids.at(np.array(error.rows)))
                error.add_note(f"In column {self.id_column!r} these rows are {ids}.")
            raise


@dataclass(frozen=True)
class ModelJob(Job):
    """A job on rows for which there is a model; where the arithmetic runs, and its budgets."""

    device: str = "cpu"
    memory: str | int = "auto"
    gpu_memory: str | int = "auto"
    precision: str = "float32"

    @property
    def memory_given(self) -> str | int:
        """Memory budget, as it was given."""
        return self.memory

    def open_graph(
        self, engine: Engine, run: RunFolder, path: Any, model: Model, seed: int = 0
    ) -> Graph:
        """Open the rows as the model's were, tied to its landmarks; ``path`` is the model's."""
        source = self.open_source(engine, run, encoding=model.encoding_for_new_rows())
        memory = engine.once(lambda: parse_memory(self.memory))
        device = Device.of(self.device, self.gpu_memory, self.precision)
        with explained_model(path):
            return model.graph(engine, source, memory, device, seed)


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Collect biglp's warnings as text; others are given as usual, and after an error all."""
    messages: list[str] = []
    ended = False
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BigLPWarning)
            yield messages
        ended = True
    finally:
        for warning in caught:
            if ended and isinstance(warning.message, BigLPWarning):
                messages.append(str(warning.message))
                continue
            # Where warnings are made errors, the error that ended the run is still the one raised.
            with nullcontext() if ended else suppress(Warning):
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )


def per_class(classes: np.ndarray, counts: Mapping[int, int]) -> dict[str, int]:
    """Rows of each class by its name."""
    return {str(name): counts.get(code, 0) for code, name in enumerate(classes.tolist())}


# Commands that are printed: what the user typed, for the next command.


def from_stdin(names: Sequence[str]) -> bool:
    """Whether rows of these names came through standard input, and are gone after the command."""
    return any(as_place(name).parent.name.startswith(STDIN_FOLDER) for name in names)


def typed_names(names: Sequence[str]) -> list[str]:
    """Names of the rows as they were typed."""
    return ["-"] if from_stdin(names) else list(names)


def typed_options(parameters: Mapping[str, Any]) -> list[str]:
    """Options of the command line, as they are typed, for parameters that were given."""
    words = []
    for name, value in parameters.items():
        if isinstance(value, (list, tuple)):
            listed = io.StringIO()
            csv.writer(listed, lineterminator="").writerow(value)
            value = listed.getvalue()
        if value not in (None, ""):
            words += [flags_of(name)[0], "tab" if value == "\t" else str(value)]
    return words
