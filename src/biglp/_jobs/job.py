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

from biglp._core.errors import BadRowsError, BigLPWarning, LabelError, ParameterError
from biglp._core.memory import PeakMemory, give_back, parse_memory
from biglp._core.parameters import flags_of
from biglp._core.progress import Progress, StepClock, versions
from biglp._engines import Engine, make_engine
from biglp._files.copies import copying_to
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import StorePath, as_place, plain_name
from biglp._jobs.results import CACHE, STAGE, SUMMARY, Destination, finish_moves, publish
from biglp._labels.reading import LabelInput
from biglp._output import TABLES, FileSink, RowIds, file_sink, table_ending
from biglp._rows import InputFiles, Source, as_source
from biglp._rows.encoding import some
from biglp._version import __version__

if TYPE_CHECKING:
    from biglp._tables.side_columns import RowColumn


# --------------------------------------------------------------------------------------------------
# The labels of a run: where they are, and facts that show when they changed.


LABEL_OPTIONS = ("labels", "label_column", "weight_column", "id_column", "unlabelled", "metadata")
"""Fields of a job that say where the labels are."""
STDIN_FOLDER, STDOUT_FOLDER = "biglp-stdin-", "biglp-stdout-"
"""How temporary folders begin for rows from standard input, and for answers to standard output."""


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


def require_labels(found: LabelInput) -> LabelInput:
    """Refuse to go on when nothing says where the labels are."""
    if found.anywhere:
        return found
    rows = found.rows if found.files is None else found.files.paths
    first = rows[0] if isinstance(rows, list) else rows
    raise ParameterError(
        f"nothing says where the labels of {first} are: give --label-column NAME for a "
        "column of the table (or of a table beside the rows, --metadata FILE), or --labels FILE "
        "for a file with one label a row, 'row,label' or 'id,label' pairs (-1 or empty where a row "
        f"has no label). Where nothing is labelled yet, biglp label {first} opens a page to label "
        f"rows on, and biglp suggest {first} names the first ones."
    )


def label_identity(found: LabelInput) -> dict[str, Any]:
    """What must not change: the files of labels and the columns."""
    metadata = {} if found.metadata_files is None else found.metadata_files.facts
    facts = dict(metadata)
    if found.files is not None and not metadata and (found.in_rows or not found.labels):
        facts = dict(found.files.facts)
    for files in found.label_files:
        facts |= files.facts
    return {
        "column": found.label_column,
        "weight column": found.weight_column,
        "id column": found.id_column,
        "unlabelled": found.unlabelled,
        "named": [plain_name(path) for path in found.labels],
        **({"metadata": list(metadata)} if metadata else {}),
        **facts,
    }


# --------------------------------------------------------------------------------------------------
# A job's side of labels and IDs: where they are, and what is said of them.


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


# --------------------------------------------------------------------------------------------------


FORMATS = ("auto", "npy", "parquet", "csv", "jsonl")


@dataclass(frozen=True)
class Job(RowIdsMixin, ABC):
    """An input, an output, an engine, and a way to go on after an interruption.

    Parameters
    ----------
    inputs : tuple of str
        Files, folders, patterns, or one ``sim:…``.
    output : path or URI
        Folder for the results.
    reading : dict
        Options of :class:`biglp._rows.ReadOptions`, without ``cache`` and ``progress``.
    id_column : str, optional
        Column of the rows' IDs, which results carry and labels may be joined by.
    metadata : str or list of str, optional
        A table beside the rows, with a line for each: labels and weights are columns of it.
    cache : str, optional
        Folder for converted rows, copies of files in stores and unfinished work whose results go
        to a store, or "never"; by default in the run folder.
    outputs : tuple of {"label", "confidence", "probabilities"}
        What is written for each row.
    top : int, optional
        Likeliest classes to write the probabilities of, instead of all.
    output_format : {"auto", "npy", "parquet", "csv", "jsonl"}
        "auto" is Parquet for tables, else ``.npy``.
    engine : str or Engine
        How the work is shared out.
    threads : int, optional
        Number of threads, of each rank with engine "mpi".
    resume, overwrite : bool
        Go on with an interrupted run; replace earlier results.
    command : str, optional
        What the user typed, for the summary.
    """

    inputs: tuple[str, ...]
    output: Any
    reading: dict[str, Any] = field(default_factory=dict)
    id_column: str | None = None
    metadata: Any = None
    cache: str | None = None
    outputs: tuple[str, ...] = ("label",)
    top: int | None = None
    output_format: str = "auto"
    engine: Any = "threads"
    threads: int | None = None
    resume: bool = False
    overwrite: bool = False
    command: str | None = None

    @cached_property
    def rows(self) -> InputFiles:
        """The input, looked up when it is first asked for."""
        return InputFiles(self.inputs[0] if len(self.inputs) == 1 else list(self.inputs))

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

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What the run is: the same again may be resumed."""

    @abstractmethod
    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Stage all files; return their names and facts for the summary."""

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Run to the end, or find that the run has ended already; return its summary.

        Parameters
        ----------
        progress : Progress, optional
            Told how far each sweep is.
        """
        place, clock = self.destination, StepClock(progress)
        # The engine comes first: an error after that ends all its processes with one message.
        with self.make_engine() as engine, self.copying(place.run_folder, clock):
            engine.progress = clock
            try:
                identity, finished = engine.once(self._begin)
            except BaseException:
                if engine.is_root:
                    place.forget()
                raise
            if finished is not None:
                if engine.is_root:
                    place.forget()
                return {**finished, "nothing_to_do": True}
            folder = place.run_folder if engine.shares_memory else place.run_folder.absolute()
            run = RunFolder(folder, identity, resume=self.resume, once=engine.once)
            if isinstance(place.path, StorePath):
                clock.say(f"unfinished work is in {folder}; results go to {place.path} at the end")
            try:
                return self._run(engine, run, clock, identity)
            except BaseException as error:
                if engine.is_root:
                    wrong = isinstance(error, LabelError | ParameterError)
                    place.tidy(run.lock, again=not wrong)
                raise
            finally:
                run.close()

    def _begin(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """What the run is, and its summary when it has ended already."""
        identity = self.identity()
        settled = self.destination.settle(identity, resume=self.resume, overwrite=self.overwrite)
        if settled is None:
            self.destination.mark()
        return identity, settled

    def copying(self, folder: Path | None, progress: Progress) -> AbstractContextManager[Any]:
        """Have files of stores copied to the cache folder, or else to the run folder, if any."""
        named = self.cache is not None and self.cache != "never"
        return copying_to(
            Path(self.cache or "") if named else folder, progress, parse_memory(self.memory_given)
        )

    @property
    def memory_given(self) -> str | int:
        """Memory budget that was given."""
        return "auto"

    def _run(
        self, engine: Engine, run: RunFolder, clock: StepClock, identity: dict[str, Any]
    ) -> dict[str, Any]:
        began = time.perf_counter()
        done = engine.once(lambda: finish_moves(run))
        if done is not None:  # it was killed while its files were getting their names
            return done
        with PeakMemory() as peak, recorded_warnings() as messages, self.ids_in_errors():
            names, facts = self.work(engine, run)
        seconds = time.perf_counter() - began
        finals = {name.partition(".")[0]: str(self.destination.final(name)) for name in names}
        summary = {
            "command": self.command,
            **facts,
            "seconds": round(seconds, 3),
            "rows_per_second": round(facts["rows"] / seconds),
            "steps": [step.as_json() for step in clock.steps.values()],
            "peak_memory": peak.peak,
            "warnings": messages,
            "resumed": self.resume,
            "files": finals,
            "versions": versions(),
            "run": identity,
        }
        return engine.once(lambda: self._publish(run, names, summary))

    def stage_pages(self, run: RunFolder, summary: dict[str, Any]) -> None:
        """Stage what is made from the summary, on one process."""

    def _publish(self, run: RunFolder, names: list[str], summary: dict[str, Any]) -> Any:
        self.check_inputs()
        self.stage_pages(run, summary)
        with atomic_write(run.folder / STAGE / SUMMARY) as file:
            file.write((json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode())
        last = [] if self.destination.is_file else [SUMMARY]
        return publish(run, self.destination, [*names, *last])

    def make_engine(self) -> Engine:
        """Make the engine that was asked for."""
        return make_engine(self.engine, self.threads)

    def open_source(self, engine: Engine, run: RunFolder, **more: Any) -> Source:
        """Open the rows; where they must be converted, one process does it, in the run folder."""
        options = {**self.reading, **more, "progress": engine.progress}
        options["cache"] = self.cache or str(run.folder / CACHE)
        source = engine.once(lambda: as_source(self.rows, **options))
        give_back()  # what decoding took is wanted for something else now
        return source

    def open_sink(
        self, engine: Engine, run: RunFolder, classes: np.ndarray, n_rows: int
    ) -> FileSink:
        """Make room for the answers, or find those of an interrupted run."""
        sink = self.make_sink(
            run.folder / STAGE, classes, n_rows, engine.once(lambda: self.row_ids)
        )
        finished = bool(run.finished_blocks())
        if finished and not engine.once(sink.resumable):
            run.forget_blocks()
            finished = False
        engine.once(lambda: sink.open(resume=finished))
        return sink

    def make_sink(
        self, stage: Path, classes: np.ndarray, n_rows: int, ids: RowIds | None
    ) -> FileSink:
        """Say where answers go, in the folder where they are made."""
        place = stage
        if self.format != "npy":
            ending = table_ending(self.destination.path.name) if self.destination.is_file else None
            place = stage / f"labels{ending or '.' + self.format}"
        sink = file_sink(place, n_rows, classes, self.outputs, self.top)
        sink.ids = ids
        return sink

    def common_identity(self, command: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """What any run is: version, input and options."""
        given = {name: value for name, value in self.reading.items() if value not in (None, ())}
        return {
            "command": command,
            "biglp": __version__,
            "input": self.rows.facts,
            "option": {
                **given,
                **options,
                "outputs": ", ".join(self.outputs),
                "top": self.top,
                "output format": self.format,
                "id column": self.id_column,
            },
        }


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
