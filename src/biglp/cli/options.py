"""Every option that several commands share, in the groups that the commands take.

An option is declared here once. The names of the fields are those of a job's arguments and of the
estimator's parameters, so that a new field reaches them without another line.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any

import typer

from biglp._core.effort import DEFAULT_EFFORT
from biglp._lowrank import FACTORS
from biglp.cli.machine_options import Machine as Machine
from biglp.cli.machine_options import Threads as Threads
from biglp.cli.values import (
    auto_or,
    balance,
    delimiter,
    named_values,
    names,
    option,
    whole_or_text,
)

READING, METHOD, OUTPUT = "Reading the rows", "Method", "Output"
_reading = partial(option, rich_help_panel=READING)
_method = partial(option, rich_help_panel=METHOD)
_output = partial(option, rich_help_panel=OUTPUT)
output_to = partial(_output, "--output", "-o")
"""Declare ``--output``, which every command that writes has, with a help text of its own."""

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Rows: .npy, .npz, .parquet, .csv, .jsonl, .arrow, .libsvm, .h5::NAME files or .zarr "
        "folders; a folder or pattern of tables or shards; a Delta or Iceberg table; URIs of these "
        "(s3://…); - for standard input; or sim:ROWSxFEATURES for made-up rows.",
        show_default=False,
    ),
]
Overwrite = Annotated[bool, _output("--overwrite", help="Replace earlier results.")]
Json = Annotated[bool, _output("--json", help="Print the summary as JSON, for scripts.")]
Quiet = Annotated[bool, _output("--quiet", "-q", help="Print nothing but errors.")]
NoProgress = Annotated[
    bool, _output("--no-progress", help="Draw no progress bars; results are printed.")
]
Debug = Annotated[bool, _output("--debug", help="Show where an error came from.")]


@dataclass(frozen=True)
class Reading:
    """How the rows are read."""

    columns: Annotated[
        Any, _reading(metavar="A,B,...", help="Feature columns; all by default.", parser=names)
    ] = None
    drop: Annotated[
        Any, _reading(metavar="A,B,...", help="Columns that are no features.", parser=names)
    ] = None
    categorical: Annotated[
        str,
        _reading(
            metavar="auto|onehot|error",
            help="Text columns: auto takes each for what it is (few or many categories, dates, "
            "names of the rows), onehot makes a feature of each category, error refuses text.",
        ),
    ] = "auto"
    text: Annotated[
        Any,
        _reading(
            metavar="A,B,...",
            help="Columns of sentences, whose words are counted; left out without this.",
            parser=names,
        ),
    ] = None
    missing: Annotated[
        str,
        _reading(
            metavar="auto|mean|error",
            help="Missing values: auto fills in the median and marks them, mean fills in the mean, "
            "error refuses them.",
        ),
    ] = "auto"
    delimiter: Annotated[
        Any,
        _reading(
            metavar="CHAR",
            help="Delimiter of a text table; found by looking by default.",
            parser=delimiter,
        ),
    ] = None
    decimal: Annotated[
        str | None,
        _reading(metavar=".|,", help="Decimal mark of a text table; found by looking by default."),
    ] = None
    text_encoding: Annotated[
        str | None,
        _reading(
            "--encoding",
            metavar="NAME",
            help="Encoding of a text table, such as cp1252; found by looking by default.",
        ),
    ] = None
    dtype: Annotated[
        str | None,
        _reading(metavar="float32|float64", help="Precision of a table's rows; float64 for text."),
    ] = None
    metadata: Annotated[
        str | None, _reading(metavar="FILE", help="Table beside the rows that has their labels.")
    ] = None
    cache: Annotated[
        str | None,
        _reading(
            metavar="FOLDER|never",
            help="Where tables are converted and files of stores copied; by the output by default.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Options of the reader that were given; cache and metadata are the job's affair."""
        known = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        del known["cache"], known["metadata"]
        return {name: value for name, (value, default) in known.items() if value != default}


@dataclass(frozen=True)
class Method:
    """Parameters of the estimator."""

    factor: Annotated[
        str,
        _method(
            metavar="|".join(("auto", *FACTORS)),
            help="Low-rank graph; auto is anchors.",
        ),
    ] = "auto"
    n_landmarks: Annotated[
        Any,
        _method(
            "--n-landmarks", "-k", metavar="K", help="Number of landmarks.", parser=auto_or(int)
        ),
    ] = "auto"
    landmarks: Annotated[
        str,
        _method(
            metavar="kmeans|kmeans-full|random",
            help="How landmarks are chosen: k-means on a sample or on all rows, or random rows.",
        ),
    ] = "kmeans"
    bandwidth: Annotated[
        Any,
        _method(metavar="SIGMA", help="Width of the Gaussian kernel.", parser=auto_or(float)),
    ] = "auto"
    alpha: Annotated[
        Any,
        _method(
            "--alpha",  # typer 0.27 would call it --ALPHA, by its metavar
            metavar="ALPHA",
            help="How far labels spread, between 0 and 1.",
            parser=auto_or(float),
        ),
    ] = "auto"
    class_balance: Annotated[
        Any,
        _method(
            metavar="auto|mass|share|centre|none|P,Q,...",
            help="Weight of the classes: equal (mass), answers as frequent as labels (share), "
            "labels less their mean (centre), as it comes (none), or their shares.",
            parser=balance,
        ),
    ] = "auto"
    filter: Annotated[
        str,
        _method(
            metavar="auto|spreading|poisson",
            help="How labels spread; auto is the committee, or spreading with a factor.",
        ),
    ] = "auto"
    clamp: Annotated[
        str,
        _method(
            metavar="soft|hard",
            help="Whether labelled rows keep their labels (hard), or can be overruled (soft).",
        ),
    ] = "soft"
    scaling: Annotated[
        str,
        _method(
            metavar="auto|none|standard|minmax|log|unit|text|table",
            help="Scaling of the features; auto looks at what they are.",
        ),
    ] = "auto"
    projection: Annotated[
        Any,
        _method(
            metavar="auto|none|N",
            help="Principal directions that wide rows are projected on.",
            parser=whole_or_text,
        ),
    ] = "auto"
    effort: Annotated[
        str, _method(metavar="fast|balanced|best", help="What may be spent on accuracy.")
    ] = DEFAULT_EFFORT
    solver: Annotated[
        str,
        _method(metavar="closed_form|iterative", help="Exact solution, or the paper's iteration."),
    ] = "closed_form"
    factor_params: Annotated[
        Any,
        _method(
            metavar="NAME=VALUE,...",
            help="Finer settings of the factor: n_nearest, bandwidth_factor; shift; start, "
            "max_iter, tol (GLNP).",
            parser=named_values,
        ),
    ] = None
    random_state: Annotated[int, _method("--seed", metavar="N", min=0, help="Seed.")] = 0


@dataclass(frozen=True)
class Results:
    """What is written for each row, and what happens to earlier results."""

    output_format: Annotated[
        str,
        _output(
            metavar="auto|npy|parquet|csv|jsonl",
            help="Format of the labels in a folder; auto is Parquet for tables, else .npy.",
        ),
    ] = "auto"
    probabilities: Annotated[
        bool, _output("--probabilities", help="Also write class probabilities.")
    ] = False
    top: Annotated[
        int | None,
        _output(
            metavar="K",
            min=1,
            help="Also write the K likeliest classes and their probabilities.",
        ),
    ] = None
    confidence: Annotated[
        bool, _output("--confidence", help="Also write the probability of the chosen class.")
    ] = False
    resume: Annotated[bool, _output("--resume", help="Go on where an interrupted run stopped.")] = (
        False
    )
    overwrite: Overwrite = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of what is written for each row."""
        if self.probabilities and self.top is not None:
            raise typer.BadParameter("give --probabilities for all classes or --top K for some.")
        wanted = {
            "label": True,
            "confidence": self.confidence,
            "probabilities": self.probabilities or self.top is not None,
        }
        return tuple(name for name, yes in wanted.items() if yes)


@dataclass(frozen=True)
class Printing:
    """What is printed."""

    as_json: Json = False
    quiet: Quiet = False
    no_progress: NoProgress = False
    debug: Debug = False
