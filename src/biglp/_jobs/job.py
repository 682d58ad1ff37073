"""What all jobs have in common: from an input that was named to published files.

What a run is, and what ``--resume`` and ``--overwrite`` compare, is its identity, of JSON values:
command and version, facts of the input's files (names, sizes, times), every option that the
answers depend on and, of a fit, where its labels are. It is written to ``run.json`` in the run
folder before the work and to ``summary.json`` after it; ``_files/runfolder.differences`` puts
into words how two of them differ.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.device import Device
from biglp._core.errors import (
    BadRowsError,
    BigLPWarning,
    CheckpointError,
    LabelError,
    ParameterError,
    StoreError,
)
from biglp._core.memory import PeakMemory, give_back, parse_memory
from biglp._core.parameters import DEFAULTS, flags_of, one_of
from biglp._core.progress import Progress, StepClock, versions
from biglp._core.settings import Settings
from biglp._core.size import HasCost, Size
from biglp._engines import Engine, make_engine
from biglp._files.copies import copying_to
from biglp._files.local import atomic_write
from biglp._files.runfolder import HEADER, RunFolder, differences, read_identity
from biglp._files.uri import StorePath, as_place, plain_name, work_folder
from biglp._fit.model import Model
from biglp._fit.plan import plan_fit
from biglp._graph.graph import Graph
from biglp._graph.landmarks import STRATEGIES
from biglp._jobs.results import (
    CACHE,
    MOVES,
    RUN_FOLDER,
    STAGE,
    SUMMARY,
    Destination,
    FinishedFit,
    finish_moves,
    unfinished_work,
)
from biglp._labels.labels import LabelsRead, only_classes
from biglp._labels.reading import LabelInput, Marks
from biglp._labels.tools import TASK_FORMATS, Tasks
from biglp._output import TABLES, file_sink
from biglp._output.sink import FileSink
from biglp._rows import InputFiles, Source, as_source
from biglp._rows.format import without_pyarrow
from biglp._rows.options import LAYOUT, ReadOptions
from biglp._rows.source import explained_model, some, table_bytes
from biglp._version import __version__

FORMATS = ("auto", "npy", "parquet", "csv", "jsonl")
STDIN_FOLDER, STDOUT_FOLDER = "biglp-stdin-", "biglp-stdout-"
"""How temporary folders begin for rows from standard input, and for answers to standard output."""
LIKELY: dict[str, Any] = {"n_classes": 10, "dtype": np.dtype(np.float64)}
LIKELY_LABELS, LIKELY_SHARE = 1000, 10
"""What is named when a budget is refused before labels were read: enough for usual ones, of which
a tenth of few rows is labelled."""


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
    confidence: bool | None = None  # beside the labels; None: in tables, not in .npy files
    probabilities: bool = False
    top: int | None = None  # likeliest classes to write the probabilities of, instead of all
    output_format: str = "auto"
    engine: Any = "threads"
    threads: int | None = None  # of each rank with engine "mpi"
    resume: bool = False
    overwrite: bool = False
    command: str | None = None  # what the user typed, for the summary
    parameters: dict[str, Any] = field(default_factory=dict)  # the estimator's, but engine, verbose

    resumable: ClassVar[bool] = True

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
            self.known_by,
            self.unlabelled,
            dict(self.reading),
            self.metadata,
            self.memory,
        )

    @property
    def layout(self) -> ReadOptions:
        """How files are laid out, without what is done with their columns."""
        return ReadOptions(**{name: self.reading[name] for name in LAYOUT if name in self.reading})

    @cached_property
    def memory(self) -> int:
        """Memory budget of this machine, in bytes."""
        return parse_memory(self.parameters.get("memory", "auto"))

    @cached_property
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
            return TABLES.get(self.destination.ending or "", "npy")
        if self.output_format == "auto":
            return "parquet" if self.rows.is_table else "npy"
        return self.output_format

    @cached_property
    def known_by(self) -> str | None:
        """Column of the rows' IDs."""
        return self.id_column

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is written of each row."""
        confidence = self.format != "npy" if self.confidence is None else self.confidence
        several = self.probabilities or self.top is not None
        return ("label", *["confidence"] * confidence, *["probabilities"] * several)

    @property
    def costs(self) -> list[HasCost]:
        """What takes time beside the fit."""
        return []

    def settings(self) -> Settings:
        """Check the parameters, as the estimator does."""
        one_of("landmarks", self.parameters.get("landmarks", "kmeans"), STRATEGIES)
        return Settings.of(self.parameters)

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What the run is, in JSON values: the same again may be resumed."""

    @abstractmethod
    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Stage all files; return their names and facts for the summary."""

    def stage_pages(self, run: RunFolder, summary: dict[str, Any]) -> None:  # noqa: B027
        """Stage what is made from the summary, on one process; nothing for most jobs."""

    def identity_with(self, command: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """What any run that writes a result for each row is: version, input and options."""
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
                "id column": self.known_by,
            },
        }

    def label_identity(self, *, named: bool = False) -> dict[str, Any]:
        """Files and columns of labels that must not change; an error where nothing names any.

        ``named``: whether the names of the classes are enough.
        """
        source = self.label_input
        if not source.anywhere and not named:
            rows = source.rows if source.files is None else source.files.paths
            first = rows[0] if isinstance(rows, list) else rows
            raise ParameterError(
                f"nothing says where the labels of {first} are: give --label-column NAME for a "
                "column of the table (or of a table beside the rows, --metadata FILE), or --labels "
                "FILE for a file with one label a row, 'row,label' or 'id,label' pairs (-1 or "
                "empty where a row has no label). Where nothing is labelled yet, biglp label "
                f"{first} opens a page to label rows on, and biglp suggest {first} names the first "
                "ones; of texts, --classes NAME,NAME,... may be enough."
            )
        metadata = {} if source.metadata_files is None else source.metadata_files.facts
        facts = dict(metadata)
        if source.files is not None and not metadata and (source.in_rows or not source.labels):
            facts = dict(source.files.facts)
        for files in source.label_files:
            facts |= files.facts
        return {
            "column": source.label_column,
            "weight column": source.weight_column,
            "id column": source.id_column,
            "unlabelled": source.unlabelled,
            "named": [plain_name(path) for path in source.labels],
            **({"metadata": list(metadata)} if metadata else {}),
            **facts,
        }

    def settle(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Decide whether the run may begin: what it is, and its summary where it has ended already.

        ParameterError: results or unfinished work would be lost. CheckpointError: the results that
        are to be resumed are another run's.
        """
        identity, path = self.identity(), self.destination.path
        folder = self.destination.run_folder
        if self.resume and self.overwrite:
            raise ParameterError("--resume and --overwrite contradict each other; give one.")
        if path.exists() and path.is_dir() == self.destination.is_file:
            what = "a folder" if self.destination.is_file else "a file"
            raise ParameterError(f"{path} is {what}; give another output (-o).")
        # Whether unfinished work is of the same run is looked at under its lock, by RunFolder.
        if self.overwrite or (self.resume and (folder / HEADER).exists()):
            return identity, None
        now, summary = json.loads(json.dumps(identity)), None
        if self.resume:
            try:
                summary = dict(json.loads((path / SUMMARY).read_text(encoding="utf-8")))
            except StoreError:
                raise
            except (OSError, ValueError):
                pass  # there is none
        if summary is not None:
            changed = differences(summary.get("run", {}), now)
            if not changed:
                return identity, summary
            raise CheckpointError(
                f"{path} holds the results of another run: {'; '.join(changed)}. "
                "Give --overwrite to replace them, or another output folder (-o)."
            )
        if results := self.destination.results():
            names = ", ".join(result.name for result in results)
            raise ParameterError(
                f"{path} already holds results ({names}). Give --overwrite to replace them, "
                "or another output (-o)."
            )
        stored = unfinished_work(folder)
        if stored and not self.resume:
            other = differences(read_identity(folder), now)
            what = " of other options or files" if other else ""
            advice = "Start" if other else "Go on with it by --resume, or start"
            where = folder if isinstance(path, StorePath) else folder.parent
            raise ParameterError(
                f"{where} holds an unfinished run{what} ({stored}). {advice} afresh with "
                "--overwrite."
            )
        return identity, None

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Run to the end, or see that the run has ended already; return its summary."""
        destination, clock = self.destination, StepClock(progress)
        in_store = isinstance(destination.path, StorePath)

        def end(finals: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
            """Stage what is left, and give all files their final names, the summary's last."""
            self.check_inputs()
            self.stage_pages(run, summary)
            with atomic_write(run.folder / STAGE / SUMMARY) as file:
                file.write((json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode())
            stale = [plain_name(path) for path in destination.results()]
            plan = {
                "moves": {name: plain_name(path) for name, path in finals.items()},
                "stale": sorted(stale, key=lambda name: not name.endswith(SUMMARY)),
                "marker": str(destination.beside) if in_store else None,
            }
            with atomic_write(run.folder / MOVES) as file:
                file.write(json.dumps(plan).encode())
            published = finish_moves(run)
            assert published is not None
            return published

        # The engine comes first: an error after that ends all its processes with one message.
        with (
            make_engine(self.engine, self.threads) as engine,
            self.copying(destination.run_folder, clock),
        ):
            engine.progress = clock
            try:
                identity, ended = engine.once(self.settle)
                if ended is None and in_store:
                    engine.once(destination.mark)
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
            if in_store:
                clock.say(
                    f"unfinished work is in {folder}; results go to {destination.path} at the end"
                )
            try:
                began = time.perf_counter()
                if self.resume:  # it may have been killed while its files were getting their names
                    done: dict[str, Any] | None = engine.once(lambda: finish_moves(run))
                    if done is not None:
                        return done
                with PeakMemory() as peak, self.watched() as messages:
                    names, facts = self.work(engine, run)
                if self.id_column is not None and self.format == "npy":
                    facts["told"].append(
                        "IDs are not written: .npy files hold answers only, in the order of the "
                        "rows. --output-format parquet, csv or jsonl has a column for them."
                    )
                seconds = time.perf_counter() - began
                path = destination.path
                finals = {name: path / name for name in names}
                if destination.is_file:  # labels are in the file that was named, others beside it
                    for name in names:
                        part = name.partition(".")[0]
                        other = path.with_name(f"{path.stem}.{part}{path.suffix}")
                        finals[name] = path if part == "labels" else other
                summary = {
                    "command": self.command,
                    **facts,
                    "seconds": round(seconds, 3),
                    "rows_per_second": round(facts["rows"] / seconds),
                    "steps": [step.as_json() for step in clock.steps.values()],
                    "peak_memory": peak.peak,
                    "warnings": messages,
                    "resumed": self.resume,
                    "files": {name.partition(".")[0]: str(path) for name, path in finals.items()},
                    "versions": versions(),
                    "run": identity,
                }
                if not destination.is_file:
                    finals[SUMMARY] = path / SUMMARY
                return engine.once(lambda: end(finals, summary))
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
        return copying_to(cache or folder, progress, self.memory)

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
        finished = bool(run.finished_blocks())
        path = stage = run.folder / STAGE
        if self.format != "npy":
            path = stage / f"labels{self.destination.ending or '.' + self.format}"
        sink = file_sink(path, n_rows, classes, self.outputs, self.top)
        sink.ids = engine.once(lambda: self.label_input.ids)
        if map:
            try:
                from biglp._output.table import MapSink  # needs pyarrow
            except ImportError as error:
                raise without_pyarrow("map.parquet", error) from error
            sink = MapSink(sink, stage)
        if finished and not engine.once(sink.resumable):
            run.forget_blocks()
            finished = False
        engine.once(lambda: sink.open(resume=finished))
        return sink

    def open_labelled(self, engine: Engine, run: RunFolder) -> tuple[Settings, Source, LabelsRead]:
        """Check the memory, then open rows and labels."""

        def check() -> Settings:
            """Refuse a table that cannot fit the memory before it is converted."""
            settings = self.settings()
            if not self.rows.is_table:
                return settings
            facts = self.rows.peek(self.layout)
            others = self.label_input.not_features
            dropped = {
                others.get("label_column"),
                *others.get("drop", self.reading.get("drop", ())),
            }
            width = len({*(self.reading.get("columns") or facts.columns)} - dropped)
            if width:  # else the reader says which columns there are
                decoding = table_bytes(facts.n_rows, width, facts.page_bytes)
                # The least that it can be: nobody has looked into it, or at its labels.
                dtype = np.dtype(np.float32)
                least = Size(facts.n_rows, width, 2, 2, float(width), dtype, decoding)
                labelled = min(LIKELY_LABELS, max(facts.n_rows // LIKELY_SHARE, 2))
                likely = replace(least, n_labelled=labelled, **LIKELY)
                plan_fit(settings, least, engine, likely=likely)
            return settings

        settings = engine.once(check)  # one budget for all: it decides the cut into blocks
        source = self.open_source(engine, run)
        classes = settings.answer.classes
        if classes is not None and not self.label_input.anywhere:
            return settings, source, LabelsRead(only_classes(classes, source.n_rows))
        read = engine.once(lambda: self.label_input.gather(source.n_rows))
        return settings, source, read

    @contextmanager
    def watched(self) -> Iterator[list[str]]:
        """Collect biglp's warnings as text, and say in errors about rows which IDs these have.

        Other warnings are given as usual, and after an error all of them.
        """
        messages: list[str] = []
        ended = False
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", BigLPWarning)
                yield messages
            ended = True
        except BadRowsError as error:
            if error.rows and self.label_input.ids is not None:
                ids = some(self.label_input.ids.at(np.array(error.rows)))
                error.add_note(f"In column {self.known_by!r} these rows are {ids}.")
            raise
        finally:
            for warning in caught:
                if ended and isinstance(warning.message, BigLPWarning):
                    messages.append(str(warning.message))
                    continue
                # Where warnings are made errors, the error that ended the run is still the one
                # raised.
                with nullcontext() if ended else suppress(Warning):
                    warnings.warn_explicit(
                        warning.message, warning.category, warning.filename, warning.lineno
                    )


@dataclass(frozen=True)
class ModelJob(Job):
    """A job on rows for which there is a model."""

    def open_graph(
        self, engine: Engine, run: RunFolder, path: Any, model: Model, seed: int = 0
    ) -> Graph:
        """Open the rows as the model's were, tied to its landmarks; ``path`` is the model's."""
        source = self.open_source(engine, run, encoding=model.encoding_for_new_rows())
        memory = engine.once(lambda: self.memory)
        places = ("device", "gpu_memory", "precision")
        device = Device.of(*({**DEFAULTS, **self.parameters}[name] for name in places))
        with explained_model(path):
            return model.graph(engine, source, memory, device, seed)


@dataclass(frozen=True)
class TableJob(Job):
    """A job that leaves nothing but one small table behind, and cannot be resumed."""

    show: tuple[str, ...] = ()  # columns of the rows' table that stand beside
    fit: FinishedFit | None = None  # whose rows and labels these are

    resumable = False
    verb: ClassVar[str]  # the command
    columns: ClassVar[tuple[str, ...]]  # of the table

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

    def refuse_to_replace(self) -> None:
        """Refuse an output that exists already, unless it may be replaced; labels may not be."""
        named = {*map(plain_name, self.labels)}
        if self.table is not None and plain_name(self.table) in named:
            raise ParameterError(
                f"{self.table} holds labels that are read here; give another output (-o), such as "
                f"{unused_table(self.labels)}."
            )
        if self.table is not None and self.table.exists() and not self.overwrite:
            raise ParameterError(
                f"{self.table} exists already. Give --overwrite to replace it, or another output "
                "(-o)."
            )

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Do the work, write the table, return what was found."""
        clock, began = StepClock(progress), time.perf_counter()
        place = self.table or self.neighbour  # text and Parquet are converted beside it
        scratch = (
            work_folder(place, self.cache)
            if isinstance(place, StorePath)
            else Path(place.with_name(f".{place.name}.{self.verb}{RUN_FOLDER}"))
        )
        with make_engine(self.engine, self.threads) as engine, self.copying(scratch, clock):
            engine.progress = clock
            identity = engine.once(self.identity)
            run = RunFolder(scratch.absolute(), identity, resume=False, once=engine.once)
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

    def fit_again(self, *labels: str) -> list[str]:
        """The command of the fit with labels that came later; none where it is not known."""
        if self.fit is None or self.fit.command is None:
            return []
        words = shlex.split(self.fit.command)
        words = [word for word in words if word not in ("--resume", "--overwrite")]
        later = (*self.labels[len(self.fit.labels) :], *labels)
        # Labels that the rows hold without names are not read beside files of labels.
        if later and not (self.fit.labels or self.label_input.in_rows):
            return []
        for file in later:
            words += ["--labels", file]
        return [shlex.join([*words, "--overwrite"])]

    def publish(
        self, engine: Engine, lines: list[dict[str, Any]]
    ) -> tuple[list[str], list[dict[str, Any]]]:
        """Write the table where a file was named, whole or not at all; return its name and lines.

        Lines have the IDs of their rows, and what else people want to see.
        """

        def write() -> list[dict[str, Any]]:
            column = self.label_input.ids
            ids = [] if column is None else [column.name]
            wanted = tuple(dict.fromkeys((*ids, *self.show)))
            if self.show and self.label_input.table_files is None:
                raise ParameterError(
                    f"show={self.show[0]!r}: {self.inputs[0]} has no columns with names; name a "
                    "table beside the rows (--metadata FILE), or leave it out."
                )
            shown = lines
            if wanted:
                side_table = self.label_input.side_table
                side_table.check("show", *self.show)
                rows = np.array([line["row"] for line in lines], dtype=np.int64)
                taken = side_table.table(wanted, rows).to_pydict()
                shown = [
                    {name: taken[name][index] for name in wanted if name not in self.show}
                    | line
                    | {name: taken[name][index] for name in self.show}
                    for index, line in enumerate(lines)
                ]
            self.check_inputs()
            if self.table is not None:
                columns = (*ids, *self.columns, *self.show)
                tasks = Tasks(shown, columns, self.show, self.id_column)
                with atomic_write(self.table) as file:
                    file.write(TASK_FORMATS[self.table_format](tasks).encode())
            return shown

        shown = engine.once(write)
        return [] if self.table is None else [str(self.table)], shown


def per_class(classes: np.ndarray, counts: Mapping[int, int]) -> dict[str, int]:
    """Rows of each class by its name."""
    return {str(name): counts.get(code, 0) for code, name in enumerate(classes.tolist())}


# Commands that are printed: what the user typed, for the next command.


def unused_table(labels: Sequence[str]) -> str:
    """A name for rows to label that is not yet that of a file of labels."""
    taken = {as_place(file).name for file in labels}
    names = (f"next{number}.csv" for number in ("", *range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def from_stdin(names: Sequence[str]) -> bool:
    """Whether rows of these names came through standard input, and are gone after the command."""
    return any(as_place(name).parent.name.startswith(STDIN_FOLDER) for name in names)


def typed_options(parameters: Mapping[str, Any]) -> list[str]:
    """Options of the command line, as they are typed, for parameters that were given."""
    words = []
    for name, value in parameters.items():
        if isinstance(value, (list, tuple)):
            listed = io.StringIO()
            csv.writer(listed, lineterminator="").writerow(value)
            value = listed.getvalue()
        if value is True:
            words.append(flags_of(name)[0])
        elif value not in (None, "", False):
            words += [flags_of(name)[0], "tab" if value == "\t" else str(value)]
    return words
