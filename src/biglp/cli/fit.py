"""``biglp fit``: from a file of rows and a few labels to labels of all rows and a model."""

from __future__ import annotations

from typing import Annotated, Any

from biglp._core.parameters import (
    LABELS,
    MACHINE,
    METHOD,
    OUTPUT,
    PRINTING,
    READING,
    RESULTS,
    Parameter,
    group,
)
from biglp._files.uri import as_place
from biglp.cli.errors import explained
from biglp.cli.options import Inputs, Options, output_to, with_options
from biglp.cli.pipes import piped

FOLDER = output_to(
    "Folder for labels, model.biglp, summary.json and report.html; may be a URI (s3://…).",
    "FOLDER",
    read=as_place,
)
MORE = group(
    OUTPUT,
    dry_run=Parameter(False, "Check everything and say what would be done; write nothing."),
    map=Parameter(
        False,
        "Also write map.parquet: a place for each row (x, y) in leading directions of the graph, "
        "with its label, confidence and doubt.",
    ),
    no_report=Parameter(False, "Write no report.html, a page that shows what was found."),
)


@explained
@piped("folder")
@with_options
def fit(
    inputs: Inputs,
    *,
    labels: Annotated[Options, LABELS],
    reading: Annotated[Options, READING],
    method: Annotated[Options, METHOD],
    machine: Annotated[Options, MACHINE],
    output: Annotated[Any, FOLDER],
    results: Annotated[Options, RESULTS],
    more: Annotated[Options, MORE],
    printing: Annotated[Options, PRINTING],
) -> None:
    """Label all rows of a file from the labels of a few.

    Writes labels.parquet (or labels.npy), model.biglp for new rows, summary.json and report.html.
    No option of the method needs to be set.

    [bold]biglp fit[/bold] data.parquet --label-column y -o out/
    [bold]biglp fit[/bold] rows.npy --labels labels.npy -o out/ --memory 4GB
    """
    from biglp._jobs.fit import FitJob
    from biglp.cli.running import job_arguments, label_arguments, placing, run_resumable
    from biglp.cli.summary import show_plan

    job = FitJob(
        **job_arguments(inputs, output, reading, machine, results),
        **label_arguments(labels),
        map=more.map,
        report=not more.no_report,
        parameters={**vars(method), **placing(machine)},
    )
    if more.dry_run:
        show_plan(job, printing.as_json)
    else:
        run_resumable(job, printing)
