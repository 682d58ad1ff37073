"""``biglp fit``: from a file of rows and a few labels to labels of all rows and a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from biglp.cli import options as given
from biglp.cli.errors import explained


@explained
def fit(
    inputs: given.Inputs,
    *,
    labels: given.Labels = None,
    label_column: given.LabelColumn = None,
    weight_column: given.WeightColumn = None,
    unlabelled: given.Unlabelled = "-1",
    columns: given.Columns = None,
    drop: given.Drop = None,
    categorical: given.Categorical = "error",
    missing: given.Missing = "error",
    delimiter: given.Delimiter = None,
    dtype: given.DType = None,
    cache: given.Cache = None,
    factor: Annotated[
        str,
        typer.Option(
            metavar="auto|anchors|nystrom|glnp|glnp-mu|linear",
            help="Low-rank graph; auto is anchors.",
            rich_help_panel=given.METHOD,
        ),
    ] = "auto",
    n_landmarks: given.Landmarks = "auto",
    landmarks: Annotated[
        str,
        typer.Option(
            metavar="kmeans|kmeans-full|random",
            help="How landmarks are chosen: k-means on a sample or on all rows, or random rows.",
            rich_help_panel=given.METHOD,
        ),
    ] = "kmeans",
    bandwidth: Annotated[
        str,
        typer.Option(
            metavar="SIGMA", help="Width of the Gaussian kernel.", rich_help_panel=given.METHOD
        ),
    ] = "auto",
    alpha: Annotated[
        str,
        typer.Option(
            metavar="ALPHA",
            help="How far labels spread, between 0 and 1.",
            rich_help_panel=given.METHOD,
        ),
    ] = "auto",
    class_balance: Annotated[
        str,
        typer.Option(
            metavar="auto|mass|share|centre|none|P,Q,...",
            help="Weight of the classes: equal (mass), answers as frequent as labels (share), "
            "labels less their mean (centre), as it comes (none), or their shares.",
            rich_help_panel=given.METHOD,
        ),
    ] = "auto",
    filter_: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="auto|spreading|poisson",
            help="How labels spread; auto is the committee, or spreading with a factor.",
            rich_help_panel=given.METHOD,
        ),
    ] = "auto",
    clamp: Annotated[
        str,
        typer.Option(
            metavar="soft|hard",
            help="Whether labelled rows keep their labels (hard), or can be overruled (soft).",
            rich_help_panel=given.METHOD,
        ),
    ] = "soft",
    scaling: Annotated[
        str,
        typer.Option(
            metavar="auto|none|standard|minmax|log",
            help="Scaling of the features.",
            rich_help_panel=given.METHOD,
        ),
    ] = "auto",
    solver: Annotated[
        str,
        typer.Option(
            metavar="closed_form|iterative",
            help="Exact solution, or the paper's iteration.",
            rich_help_panel=given.METHOD,
        ),
    ] = "closed_form",
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Seed.", rich_help_panel=given.METHOD)
    ] = 0,
    memory: given.Memory = "auto",
    threads: given.Threads = None,
    engine: given.Engine = "threads",
    device: given.Device = "cpu",
    output: given.OutFolder,
    output_format: given.OutputFormat = "auto",
    probabilities: given.Probabilities = False,
    top: given.Top = None,
    confidence: given.Confidence = False,
    resume: given.Resume = False,
    overwrite: given.Overwrite = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check everything and say what would be done; write nothing.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Label all rows of a file from the labels of a few.

    Writes labels.parquet (or labels.npy), model.biglp for new rows and summary.json.
    No option of the method needs to be set.

    [bold]biglp fit[/bold] data.parquet --label-column y -o out/
    [bold]biglp fit[/bold] rows.npy --labels labels.npy -o out/ --memory 4GB
    """
    from biglp._jobs.fit import FitJob

    job = FitJob(
        inputs=tuple(inputs),
        output=output,
        reading=given.reading_options(columns, drop, categorical, missing, delimiter, dtype),
        cache=cache,
        outputs=given.wanted_outputs(probabilities, confidence, top),
        top=top,
        output_format=output_format,
        engine=engine,
        threads=threads,
        resume=resume,
        overwrite=overwrite,
        command=given.typed_command(),
        labels=labels,
        label_column=label_column,
        weight_column=weight_column,
        unlabelled=given.whole_or_text(unlabelled),
        parameters={
            "factor": factor,
            "n_landmarks": given.auto_or_number("--n-landmarks", n_landmarks, int),
            "landmarks": landmarks,
            "bandwidth": given.auto_or_number("--bandwidth", bandwidth),
            "alpha": given.auto_or_number("--alpha", alpha),
            "class_balance": given.balance(class_balance),
            "filter": filter_,
            "clamp": clamp,
            "scaling": scaling,
            "solver": solver,
            "device": device,
            "memory": memory,
            "random_state": seed,
        },
    )
    if dry_run:
        _show_plan(job, as_json)
        return
    from biglp.cli.running import run_job

    run_job(job, as_json=as_json, quiet=quiet)


def _show_plan(job: Any, as_json: bool) -> None:
    """Say what would be done."""
    from biglp.cli.planning import show_plan

    show_plan(job, as_json)
