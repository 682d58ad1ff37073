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
    STRICT,
    Parameter,
    group,
)
from biglp._files.uri import as_place
from biglp.cli.errors import explained
from biglp.cli.options import Inputs, Options, output_to, piped

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
def fit(
    inputs: Inputs,
    *,
    labels: Annotated[Options, LABELS],
    reading: Annotated[Options, READING | STRICT],
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
    from biglp.cli.running import job_arguments, label_arguments, run_job

    job = FitJob(
        **job_arguments(inputs, output, reading, machine, results, method),
        **label_arguments(labels),
        map=more.map,
        report=not more.no_report,
    )
    if not more.dry_run:
        run_job(job, printing)
        return

    import json

    from biglp._core.memory import format_bytes
    from biglp._jobs.inspect import plan
    from biglp.cli.console import escape, results_console, seconds

    planned = plan(job)
    console = results_console()
    if printing.as_json:
        console.print_json(json.dumps(planned))
        return
    labels = planned["labels"]
    landmarks = f", {planned['landmarks']:,} landmarks" if planned["landmarks"] else ""
    features = "stored between sweeps" if planned["stored"] else "computed again in each sweep"
    console.print(
        f"[bold]{escape(planned['input'])}[/bold]: {planned['format']}, {planned['rows']:,} rows × "
        f"{planned['features']:,} features, {sum(labels.values()):,} labels of "
        f"{len(labels):,} classes"
    )
    console.print(
        f"{planned['settings']['factor']}{landmarks}; {planned['threads']} threads, "
        f"{planned['rows_a_block']:,} rows a block; features {features}"
    )
    console.print(
        f"About {seconds(planned['seconds'])} and {format_bytes(planned['memory'])} of memory. "
        f"Would write to {escape(planned['output'])}; nothing was written."
    )
