"""What ``biglp inspect`` and ``biglp fit --dry-run`` find out about an input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from biglp._core.errors import MemoryBudgetError
from biglp._core.memory import parse_memory
from biglp._core.progress import Progress
from biglp._core.settings import Settings
from biglp._engines import Engine, make_engine
from biglp._fit.memory import least_memory
from biglp._jobs.fit import FitJob, per_class
from biglp._jobs.inputs import LABEL_OPTIONS
from biglp._jobs.inspect.estimate import Estimate, Trials
from biglp._labels.labels import Labels
from biglp._lowrank import FACTORS
from biglp._sources import InputFiles, ReadOptions
from biglp._sources.labels.codes import Marks
from biglp._sources.labels.input import Gathered, LabelInput
from biglp._sources.options import LAYOUT
from biglp._sources.peek import FileFacts
from biglp._sources.probe import Probe
from biglp._sources.stores.copies import copying_to
from biglp._sources.tables.problems import NoFeaturesError

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("", {}),
    "anchor graph": ("--factor anchors", {"factor": "anchors"}),
    "Nyström, k-means": ("--factor nystrom", {"factor": "nystrom"}),
    "Nyström, random": (
        "--factor nystrom --landmarks random",
        {"factor": "nystrom", "landmarks": "random"},
    ),
    "linear kernel": ("--factor linear", {"factor": "linear"}),
    "GLNP": ("--factor glnp", {"factor": "glnp"}),
}
"""Methods that are compared: the options that choose them, and the parameters."""

MOST_LEARNT = 1_000_000
"""Numbers of a factor that is learnt, up to which it is tried quickly."""


@dataclass(frozen=True)
class Survey:
    """What is asked about an input.

    Attributes
    ----------
    inputs : InputFiles
    labels, label_column, weight_column, id_column, unlabelled, metadata
        Where the labels are, as for ``fit``; none are needed.
    reading : dict
        Options of :class:`biglp._sources.ReadOptions`.
    n_landmarks, memory, device, gpu_memory
        As for ``fit``.
    threads : int, optional
    full : bool
        Whether methods are tried on more rows, which takes longer.
    """

    inputs: InputFiles
    labels: tuple[str, ...] = ()
    label_column: str | None = None
    weight_column: str | None = None
    id_column: str | None = None
    unlabelled: Marks = None
    metadata: Any = None
    reading: dict[str, Any] = field(default_factory=dict)
    n_landmarks: int | str = "auto"
    memory: str | int = "auto"
    device: str = "cpu"
    gpu_memory: str | int = "auto"
    threads: int | None = None
    full: bool = False

    @cached_property
    def label_input(self) -> LabelInput:
        """Where the labels are, if anywhere."""
        named = {name: getattr(self, name) for name in LABEL_OPTIONS}
        memory = parse_memory(self.memory)
        return LabelInput(self.inputs, **named, reading=self.reading, memory=memory)

    def read_labels(self, facts: FileFacts) -> Gathered | None:
        """The labels, where anything says where they are."""
        return _read(self.label_input, facts) if self.label_input.anywhere else None


def survey(asked: Survey, progress: Progress | None = None) -> dict[str, Any]:
    """Look at an input, count its labels and estimate every method.

    Files of a store are copied to a temporary folder.

    Returns
    -------
    facts : dict
        JSON values only.
    """
    with copying_to(None, progress, parse_memory(asked.memory)):
        return _survey(asked, progress)


def _survey(asked: Survey, progress: Progress | None) -> dict[str, Any]:
    inputs, label_column = asked.inputs, asked.label_column
    named = [inputs.paths] if isinstance(inputs.paths, str) else inputs.paths
    reading = dict(asked.reading)
    layout = {name: reading[name] for name in LAYOUT if name in reading}
    facts = inputs.peek(ReadOptions(**layout))
    gathered = asked.read_labels(facts)
    found = None if gathered is None else gathered.labels
    if inputs.is_table:
        reading |= asked.label_input.not_features
    engine = make_engine("threads", asked.threads)
    rows = found.n_rows if found is not None else facts.n_rows
    looked: Probe | NoFeaturesError
    try:
        looked = replace(inputs.probe(ReadOptions(**reading)), n_rows=rows)
    except NoFeaturesError as error:  # what would be done with each column is known all the same
        looked = error
    return {
        "name": ", ".join(named),
        "format": facts.kind,
        "size": facts.size,
        "rows": rows,
        "exact": facts.exact or found is not None,
        "features": looked.source.n_features if isinstance(looked, Probe) else 0,
        "dtype": None if facts.columns else facts.dtype,
        "converted": facts.converted,
        "columns": _columns(facts, looked, {label_column: "the label", asked.id_column: "the ID"}),
        "missing_values": sum(looked.missing.values()),
        "looked_at": looked.looked_at,
        "labels": found and per_class(found.classes, dict(enumerate(found.rows_each.tolist()))),
        "told": [] if gathered is None else gathered.told,
        "warnings": [] if gathered is None else list(map(str, gathered.suspicions())),
        "memory": parse_memory(asked.memory),
        "threads": engine.n_threads,
        "problem": None if isinstance(looked, Probe) else str(looked),
        "methods": _methods(asked, engine, looked, found, progress or Progress())
        if isinstance(looked, Probe)
        else [],
    }


def _methods(
    asked: Survey, engine: Engine, looked: Probe, labels: Labels | None, progress: Progress
) -> list[dict[str, Any]]:
    """Estimates of every method."""
    trials, methods = Trials(engine, looked, labels, asked.full), []
    with progress.task("trying methods", len(METHODS)) as task:
        for name, (options, parameters) in METHODS.items():
            names = ("n_landmarks", "memory", "device", "gpu_memory")
            common = {each: getattr(asked, each) for each in names}
            settings = Settings.of({**parameters, **common})
            if not asked.full and _is_slow(settings, looked):
                continue
            found = {"name": name, "options": options, "landmarks": _landmarks(looked, settings)}
            methods.append((found, _tried(trials, settings)))
            task.advance(1)
    return [found | _facts(tried) for found, tried in methods]


def _is_slow(settings: Settings, looked: Probe) -> bool:
    """Whether a short trial would take long: a factor is learnt, of rows of many features."""
    kind, n_features = FACTORS[settings.graph.factor], looked.source.n_features
    rank = kind.rank_for(settings.graph, looked.n_rows, n_features)
    return kind.learnt and rank * n_features > MOST_LEARNT


def plan(job: FitJob, progress: Progress | None = None) -> dict[str, Any]:
    """Check a job and estimate it without writing anything; files of stores are copied for it."""
    with job.copying(None, progress or Progress()):
        return _plan(job)


def _plan(job: FitJob) -> dict[str, Any]:
    identity = job.identity()
    job.destination.settle(identity, resume=job.resume, overwrite=job.overwrite)
    settings = job.settings()
    layout = {name: value for name, value in job.reading.items() if name in LAYOUT}
    facts = job.rows.peek(ReadOptions(**layout))
    labels = _read(job.label_input, facts).labels
    looked = job.rows.probe(ReadOptions(**{**job.reading, **job.label_input.not_features}))
    looked = replace(looked, n_rows=labels.n_rows)
    with job.make_engine() as engine:
        engine.progress = Progress()
        trials = Trials(engine, looked, labels)
        found = trials.estimate(settings, parquet=job.format != "npy", report=job.report)
    return {
        "input": ", ".join(job.inputs),
        "format": facts.kind,
        "rows": labels.n_rows,
        "features": looked.source.n_features,
        "labels": per_class(labels.classes, dict(enumerate(labels.rows_each.tolist()))),
        "settings": {
            name: value
            for part in (settings.graph, settings.answer)
            for name, value in asdict(part).items()
            if isinstance(value, (int, float, str, bool))
        },
        "landmarks": _landmarks(looked, settings),
        "rows_a_block": found.plan.rows_each,
        "threads": found.plan.workers,
        "stored": found.plan.stores_features,
        "seconds": round(found.seconds, 2),
        "steps": {name: round(seconds, 3) for name, seconds in found.steps.items()},
        "memory": found.memory,
        "gpu": found.plan.card and found.plan.card.describe(),
        "output": str(job.destination.path),
    }


def _read(source: LabelInput, facts: FileFacts) -> Gathered:
    """Read labels; those in the table itself also count its rows."""
    return source.gather(facts.n_rows if facts.exact else None)


def _columns(
    facts: FileFacts, looked: Probe | NoFeaturesError, no_features: dict[str | None, str]
) -> dict[str, Any]:
    uses = looked.uses if isinstance(looked, Probe) else {}
    return {
        name: {
            "type": kind,
            "missing": looked.missing.get(name, 0),
            "feature": name in uses,
            "use": no_features.get(name) or _use(name, uses, looked.left_out),
        }
        for name, kind in facts.columns.items()
    }


def _use(name: str, uses: Mapping[str, str], left_out: Mapping[str, str]) -> str:
    """What is done with a column, and why."""
    if name in left_out:
        return f"left out: {left_out[name]}"
    return uses.get(name, "left out, as asked")


def _tried(trials: Trials, settings: Settings) -> Estimate | int:
    """An estimate, or the memory that a method needs where it does not fit."""
    try:
        return trials.estimate(settings, parquet=False)
    except MemoryBudgetError:
        return least_memory(settings, trials.shape_of(settings), trials.engine)


def _facts(tried: Estimate | int) -> dict[str, Any]:
    """What is told of a trial, when all are over."""
    if isinstance(tried, int):
        return {"seconds": None, "memory": tried}
    return {
        "seconds": round(tried.seconds, 3),
        "cpu_seconds": round(tried.cpu_seconds, 3),
        "memory": tried.memory,
        "steps": {name: round(seconds, 3) for name, seconds in tried.steps.items()},
    }


def _landmarks(looked: Probe, settings: Settings) -> int | None:
    """Number of landmarks; None for a factor that has none."""
    kind = FACTORS[settings.graph.factor]
    if not kind.n_landmarks_counts:
        return None
    return kind.rank_for(settings.graph, looked.n_rows, looked.source.n_features)
