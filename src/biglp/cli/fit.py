"""``biglp fit``: from a file of rows and a few labels to labels of all rows and a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from biglp._core.places import as_place
from biglp.cli.errors import explained
from biglp.cli.groups import grouped
from biglp.cli.label_options import Labels
from biglp.cli.options import (
    OUTPUT,
    Inputs,
    Machine,
    Method,
    Printing,
    Reading,
    Results,
    output_to,
)
from biglp.cli.pipes import piped


@explained
@piped("folder")
@grouped
def fit(
    inputs: Inputs,
    *,
    labels: Labels,
    reading: Reading,
    method: Method,
    machine: Machine,
    output: Annotated[
        Any,
        output_to(
            parser=as_place,
            metavar="FOLDER",
            help="Folder for labels, model.biglp, summary.json and report.html; may be a URI "
            "(s3://…).",
            show_default=False,
        ),
    ],
    results: Results,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check everything and say what would be done; write nothing.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    row_map: Annotated[
        bool,
        typer.Option(
            "--map",
            help="Also write map.parquet: a place for each row (x, y) in leading directions of the "
            "graph, with its label, confidence and doubt.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    no_report: Annotated[
        bool,
        typer.Option(
            "--no-report",
            help="Write no report.html, a page that shows what was found.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    printing: Printing,
) -> None:
    """Label all rows of a file from the labels of a few.

    Writes labels.parquet (or labels.npy), model.biglp for new rows, summary.json and report.html.
    No option of the method needs to be set.

    [bold]biglp fit[/bold] data.parquet --label-column y -o out/
    [bold]biglp fit[/bold] rows.npy --labels labels.npy -o out/ --memory 4GB
    """
    from biglp._jobs.fit import FitJob
    from biglp.cli.running import job_arguments, placing, run_resumable
    from biglp.cli.summary import show_plan

    job = FitJob(
        **job_arguments(inputs, output, reading, machine, results),
        **labels.given(),
        map=row_map,
        report=not no_report,
        parameters={**asdict(method), **placing(machine)},
    )
    if dry_run:
        show_plan(job, printing.as_json)
    else:
        run_resumable(job, printing)
