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
        run_job(FirstJob(**arguments, **named), printing, _show_first)
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


def _show_first(summary: dict[str, Any]) -> None:
    from biglp.cli.console import escape, plain_table, results_console, seconds

    console, lines = results_console(), summary["suggestions"]
    console.print(
        f"[bold green]{len(lines):,} of {summary['rows']:,} rows[/bold green] to label first, "
        f"typical ones that cover the clusters, found in {seconds(summary['seconds'])}"
    )
    if summary["files"]:
        _show_files(summary)
        console.print("Fill in its column 'label', then")
    else:
        more = [name for name in lines[0] if name not in ("row", "label")]
        table = plain_table(*more, "row", right=("row",))
        for line in lines:
            table.add_row(*(escape(str(line[name])) for name in more), str(line["row"]))
        console.print(table)
        console.print(
            "Write their labels to next.csv as 'row,label' (-o next.csv begins it), then:"
        )
    for command in summary["next"]:
        console.print(f"  {escape(command)}", soft_wrap=True)


def _show(summary: dict[str, Any]) -> None:
    from biglp._jobs.suggest import SuggestJob
    from biglp.cli import console as to

    to.show_notes(summary)
    console, lines = to.results_console(), summary["suggestions"]
    unlabelled = summary["rows"] - summary["labelled_rows"]
    if not lines:
        console.print(f"All {summary['rows']:,} rows have labels; there is nothing to suggest.")
        return
    console.print(
        f"[bold green]{len(lines):,} of {unlabelled:,} unlabelled rows[/bold green] suggested in "
        f"{to.seconds(summary['seconds'])} ({summary['rows_per_second']:,} rows/s), "
        f"{to.format_bytes(summary['peak_memory'])} of memory"
    )
    if summary["files"]:
        _show_files(summary)
        return
    more = [name for name in lines[0] if name not in SuggestJob.columns]
    right = ("row", "confidence", "doubt")
    table = to.plain_table("row", *more, "label now", *right[1:], right=right)
    for line in lines:
        table.add_row(
            str(line["row"]),
            *(to.escape(str(line[name])) for name in more),
            to.escape(str(line["current_label"])),
            f"{line['confidence']:.1%}",
            f"{line['doubt']:.2f}",
        )
    console.print(table)


def _show_files(summary: dict[str, Any]) -> None:
    from biglp.cli.console import escape, results_console

    console = results_console()
    console.print(f"Written: {', '.join(summary['files'])}", soft_wrap=True)
    if summary["interface"]:
        console.print("Labelling interface of the project in Label Studio:")
        console.print(f"  {escape(summary['interface'])}", soft_wrap=True)
