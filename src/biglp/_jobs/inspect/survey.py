"""What ``biglp inspect`` and ``biglp fit --dry-run`` find out about an input."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from biglp._core.errors import MemoryBudgetError
from biglp._core.progress import Progress
from biglp._engines import Engine, make_engine
from biglp._fit.memory import least_memory
from biglp._fit.settings import Settings
from biglp._jobs.fit import FitJob, not_features, per_class
from biglp._jobs.inputs import Inputs, label_input
from biglp._jobs.inspect.probe import Probe, probe
from biglp._jobs.inspect.trial import estimate, shape_of_probe
from biglp._labels.labels import Labels
from biglp._lowrank import FACTORS
from biglp._sources import ReadOptions
from biglp._sources.peek import FileFacts, peek

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


@dataclass(frozen=True)
class Survey:
    """What is asked about an input.

    Attributes
    ----------
    inputs : Inputs
    labels, label_column, weight_column, unlabelled
        Where the labels are, as for ``fit``; none are needed.
    reading : dict
        Options of :class:`biglp._sources.ReadOptions`.
    n_landmarks, memory
        As for ``fit``.
    threads : int, optional
    """

    inputs: Inputs
    labels: str | None = None
    label_column: str | None = None
    weight_column: str | None = None
    unlabelled: int | str = -1
    reading: dict[str, Any] = field(default_factory=dict)
    n_landmarks: int | str = "auto"
    memory: str | int = "auto"
    threads: int | None = None

    def read_labels(self, facts: FileFacts) -> Labels | None:
        """The labels, where anything says where they are."""
        named = self.labels is not None or self.label_column is not None
        if not named and not self.inputs.holds_labels:
            return None
        where = label_input(
            self.inputs, self.labels, self.label_column, self.unlabelled, self.weight_column
        )
        return _read(where, facts)


def survey(asked: Survey, progress: Progress | None = None) -> dict[str, Any]:
    """Look at an input, count its labels and estimate every method.

    Returns
    -------
    facts : dict
        JSON values only.
    """
    inputs, label_column = asked.inputs, asked.label_column
    reading = dict(asked.reading)
    layout = {name: reading[name] for name in ("delimiter",) if name in reading}
    facts = peek(inputs.paths, **layout)
    found = asked.read_labels(facts)
    in_rows = asked.labels is None and inputs.metadata is None
    if inputs.is_table and in_rows and label_column is not None:
        reading |= not_features(label_column, asked.weight_column, reading)
    looked = probe(inputs, ReadOptions(**reading))
    engine = make_engine("threads", asked.threads)
    rows = found.n_rows if found is not None else facts.n_rows
    looked = replace(looked, n_rows=rows)
    methods = []
    with (progress or Progress()).task("trying methods", len(METHODS)) as task:
        for name, (options, parameters) in METHODS.items():
            common = {"n_landmarks": asked.n_landmarks, "memory": asked.memory}
            settings = Settings.of({**parameters, **common})
            methods.append(
                {"name": name, "options": options, **_tried(engine, looked, settings, found)}
            )
            task.advance(1)
    return {
        "name": ", ".join(inputs.names),
        "format": facts.kind,
        "size": facts.size,
        "rows": rows,
        "exact": facts.exact or found is not None,
        "features": looked.source.n_features,
        "dtype": None if facts.columns else facts.dtype,
        "converted": facts.converted,
        "columns": _columns(facts, looked, label_column),
        "missing_values": sum(looked.missing.values()),
        "looked_at": looked.looked_at,
        "labels": found and per_class(found.classes, dict(enumerate(found.rows_each.tolist()))),
        "memory": settings.memory,
        "threads": engine.n_threads,
        "methods": methods,
    }


def plan(job: FitJob, progress: Progress | None = None) -> dict[str, Any]:
    """Check a job and estimate it without writing anything."""
    identity = job.identity()
    job.destination.settle(identity, resume=job.resume, overwrite=job.overwrite)
    settings = job.settings()
    facts = peek(job.rows.paths)
    labels = _read(job.label_input, facts)
    looked = probe(job.rows, ReadOptions(**{**job.reading, **job.feature_options}))
    looked = replace(looked, n_rows=labels.n_rows)
    with job.make_engine() as engine:
        engine.progress = Progress()
        found = estimate(engine, looked, settings, labels, parquet=job.format == "parquet")
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
        "landmarks": _rank(looked, settings),
        "rows_a_block": found.plan.rows_each,
        "threads": found.plan.workers,
        "stored": found.plan.stores_features,
        "seconds": round(found.seconds, 2),
        "steps": {name: round(seconds, 3) for name, seconds in found.steps.items()},
        "memory": found.plan.expected,
        "output": str(job.destination.path),
    }


def _read(source: Any, facts: FileFacts) -> Labels:
    """Read labels; those in the table itself also count its rows."""
    return source.read(facts.n_rows if facts.exact else None)


def _columns(facts: FileFacts, looked: Probe, label_column: str | None) -> dict[str, Any]:
    return {
        name: {
            "type": kind,
            "missing": looked.missing.get(name, 0),
            "feature": name in looked.uses,
            "use": _use(name, looked, label_column),
        }
        for name, kind in facts.columns.items()
    }


def _use(name: str, looked: Probe, label_column: str | None) -> str:
    """What is done with a column, and why."""
    if name == label_column:
        return "the label"
    if name in looked.left_out:
        return f"left out: {looked.left_out[name]}"
    return looked.uses.get(name, "left out, as asked")


def _tried(
    engine: Engine, looked: Probe, settings: Settings, labels: Labels | None
) -> dict[str, Any]:
    counts = FACTORS[settings.graph.factor].n_landmarks_counts
    landmarks = _rank(looked, settings) if counts else None
    try:
        found = estimate(engine, looked, settings, labels, parquet=False)
    except MemoryBudgetError:
        least = least_memory(settings, shape_of_probe(looked, labels, settings), engine)
        return {"landmarks": landmarks, "seconds": None, "memory": least}
    return {
        "landmarks": landmarks,
        "seconds": round(found.seconds, 3),
        "memory": found.plan.expected,
        "steps": {name: round(seconds, 3) for name, seconds in found.steps.items()},
    }


def _rank(looked: Probe, settings: Settings) -> int:
    kind = FACTORS[settings.graph.factor]
    return kind.rank_for(settings.graph, looked.n_rows, looked.source.n_features)
