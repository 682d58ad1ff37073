"""``biglp suggest``: which rows to label next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from biglp._core.errors import ParameterError
from biglp._core.parameters import (
    MACHINE,
    METHOD_PANEL,
    OUTPUT,
    PRINTING,
    READING,
    TASKS,
    Parameter,
    chosen,
    column_names,
    flags_of,
)
from biglp._files.uri import as_place
from biglp.cli.errors import explained
from biglp.cli.options import Options, argument, output_to, piped

GRAPH = ("n_landmarks", "scaling", "random_state")
"""Parameters that the choice of the first rows follows from."""
NUMBER = Parameter(10, "Rows to suggest.", "N", flag="--number -n", least=1, panel=METHOD_PANEL)
MODEL = Parameter(None, "A model.biglp file.", "FILE", read=as_place, panel=METHOD_PANEL)
FILE = output_to(
    "File with an empty column 'label' to fill in, or - for standard output; printed for people by "
    "default.",
    "FILE",
    None,
    read=as_place,
)
SHOW = Parameter(
    None,
    "Columns of the rows' table to show to those who label.",
    "A,B,...",
    read=column_names,
    panel=OUTPUT,
)


@explained
@piped("table")
def suggest(
    inputs: Annotated[
        list[str],
        argument(
            "FOLDER | INPUT",
            "Folder that biglp fit wrote, whose rows and labels are used; or rows: with "
            "--model what to label next, without it what to label first.",
        ),
    ],
    *,
    n: Annotated[int, NUMBER],
    model: Annotated[Any, MODEL],
    labels: Annotated[Options, ("labels", "label_column", "id_column", "unlabelled")],
    reading: Annotated[Options, READING],
    method: Annotated[Options, GRAPH],
    machine: Annotated[Options, MACHINE],
    output: Annotated[Any, FILE],
    task_format: Annotated[str | None, TASKS["task_format"]],
    show: Annotated[Any, SHOW],
    results: Annotated[Options, ("overwrite",)],
    printing: Annotated[Options, PRINTING],
) -> None:
    """Say which rows to label next: those whose labels would help most.

    Rows that the model is in doubt about, typical of others, and not close to each other; one sweep
    over the rows. With rows alone, no labels are needed: typical rows that cover the clusters.

    [bold]biglp suggest[/bold] data.npy -n 20 -o next.csv
    [bold]biglp suggest[/bold] out/ -n 10
    [bold]biglp suggest[/bold] data.parquet --model out/model.biglp --labels labels.csv -o next.csv
    """
    from biglp._jobs.suggest import FirstJob, SuggestJob, is_finished_fit, suggest_of_fit
    from biglp._rows.options import LAYOUT
    from biglp.cli.running import added_labels, job_arguments, label_arguments, run_job

    arguments = job_arguments(inputs, output or Path(), reading, machine, results, method)
    arguments |= {"n": n, "task_format": task_format, "show": show or ()}
    named = label_arguments(labels)
    del named["weight_column"]  # which rows have a label is all that counts here
    if model is None and not is_finished_fit(inputs):
        run_job(FirstJob(**arguments, **named), printing, _show)
        return
    # Features and graph are those of the model.
    own = ("drop", "metadata", "cache", *LAYOUT)
    refused = [name for name in (*chosen(vars(reading)), *chosen(vars(method))) if name not in own]
    if refused:
        raise ParameterError(
            f"{flags_of(refused[0])[0]} means nothing here: how rows become features is known from "
            "the model. Leave it out, or give rows without --model."
        )
    if model is None:
        known = suggest_of_fit(as_place(inputs[0]))
        known |= {name: added_labels(known, labels)[name] for name in named}
        known["reading"] = arguments["reading"] or known["reading"]
        known["metadata"] = reading.metadata or known["metadata"]
    else:
        known = {"model": model, **named}
    run_job(SuggestJob(**(arguments | known)), printing, _show)


def _show(summary: dict[str, Any]) -> None:
    """What was chosen; without a model ("first") typical rows; and the commands that follow."""
    from biglp.cli import console as to

    console, lines = to.results_console(), summary["suggestions"]
    first = "first" in summary
    if first:
        console.print(
            f"[bold green]{len(lines):,} of {summary['rows']:,} rows[/bold green] to label first, "
            f"typical ones that cover the clusters, found in {to.seconds(summary['seconds'])}"
        )
    else:
        to.show_notes(summary)
        unlabelled = summary["rows"] - summary["labelled_rows"]
        if not lines:
            console.print(f"All {summary['rows']:,} rows have labels; there is nothing to suggest.")
            return
        console.print(
            f"[bold green]{len(lines):,} of {unlabelled:,} unlabelled rows[/bold green] suggested "
            f"in {to.seconds(summary['seconds'])} ({summary['rows_per_second']:,} rows/s), "
            f"{to.format_bytes(summary['peak_memory'])} of memory"
        )
    if summary["files"]:
        console.print(f"Written: {', '.join(summary['files'])}", soft_wrap=True)
        if summary["interface"]:
            console.print("Labelling interface of the project in Label Studio:")
            console.print(f"  {to.escape(summary['interface'])}", soft_wrap=True)
        if summary["next"]:
            console.print("Fill in its column 'label', then")
    else:
        own = ("row", "label", "current_label", "confidence", "doubt")
        more = [name for name in lines[0] if name not in own]
        right = ("row", "confidence", "doubt")
        names = (*more, "row") if first else ("row", *more, "label now", *right[1:])
        table = to.plain_table(*names, right=right)
        for line in lines:
            cells = [to.escape(str(line[name])) for name in more]
            if first:
                table.add_row(*cells, str(line["row"]))
                continue
            label, doubt = to.escape(str(line["current_label"])), f"{line['doubt']:.2f}"
            table.add_row(str(line["row"]), *cells, label, f"{line['confidence']:.1%}", doubt)
        console.print(table)
        if summary["next"]:
            table = summary["to_fill_in"]
            console.print(
                f"Write their labels to {table} as 'row,label' (-o {table} begins it), then:"
            )
    for command in summary["next"]:
        console.print(f"  {to.escape(command)}", soft_wrap=True)
