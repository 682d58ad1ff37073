"""``biglp suggest``: which rows to label next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from biglp.cli.errors import explained
from biglp.cli.groups import grouped, only
from biglp.cli.options import METHOD, Labels, Machine, Printing, Reading, Results, output_to


@explained
@grouped
def suggest(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER | INPUT",
            help="Folder that biglp fit wrote, whose rows and labels are used; or rows, with "
            "--model.",
            show_default=False,
        ),
    ],
    *,
    n: Annotated[
        int,
        typer.Option(
            "--number",
            "-n",
            min=1,
            metavar="N",
            help="Rows to suggest.",
            rich_help_panel=METHOD,
        ),
    ] = 10,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A model.biglp file.", rich_help_panel=METHOD),
    ] = None,
    labels: Annotated[Labels, only("labels", "label_column", "unlabelled")],
    reading: Annotated[Reading, only("drop", "delimiter", "cache")],
    machine: Machine,
    output: Annotated[
        Path | None,
        output_to(
            metavar="FILE",
            help="CSV file with an empty column 'label' to fill in; printed by default.",
        ),
    ] = None,
    results: Annotated[Results, only("overwrite")],
    printing: Printing,
) -> None:
    """Say which rows to label next: those whose labels would help most.

    Rows that the model is in doubt about, typical of others, and not close to each other. One
    sweep over the rows.

    [bold]biglp suggest[/bold] out/ -n 10
    [bold]biglp suggest[/bold] data.parquet --model out/model.biglp --labels labels.csv -o next.csv
    """
    from biglp._core.errors import ParameterError
    from biglp._jobs.suggest import SuggestJob, earlier_run
    from biglp.cli.running import job_arguments, run_job

    arguments = job_arguments(inputs, output or Path(), reading, machine, results)
    if model is None:
        if len(inputs) != 1 or not Path(inputs[0]).is_dir():
            raise ParameterError(
                f"nothing says which model knows {inputs[0]}: give --model FILE, or the folder "
                "that biglp fit wrote instead of the rows."
            )
        known = earlier_run(Path(inputs[0]))
    else:
        known = {"inputs": tuple(inputs), "model": model}
    named = {
        "labels": labels.labels,
        "label_column": labels.label_column,
        "reading": reading.given(),
    }
    known |= {name: value for name, value in named.items() if value or name not in known}
    job = SuggestJob(
        **(arguments | {"unlabelled": labels.unlabelled} | known),
        n=n,
        device=machine.device,
        memory=machine.memory,
    )
    run_job(job, printing, _show)


def _show(summary: dict[str, Any]) -> None:
    from biglp._core.memory import format_bytes
    from biglp.cli.console import plain_table, results_console, seconds
    from biglp.cli.errors import escape

    console, found = results_console(), summary["suggestions"]
    unlabelled = summary["rows"] - summary["labelled_rows"]
    if not found:
        console.print(f"All {summary['rows']:,} rows have labels; there is nothing to suggest.")
        return
    console.print(
        f"[bold green]{len(found):,} of {unlabelled:,} unlabelled rows[/bold green] suggested in "
        f"{seconds(summary['seconds'])} ({summary['rows_per_second']:,} rows/s), "
        f"{format_bytes(summary['peak_memory'])} of memory"
    )
    if summary["files"]:
        console.print(f"Written: {', '.join(summary['files'])}", soft_wrap=True)
        return
    right = ("row", "confidence", "doubt")
    table = plain_table("row", "label now", "confidence", "doubt", right=right)
    for line in found:
        table.add_row(
            str(line["row"]),
            escape(str(line["current_label"])),
            f"{line['confidence']:.1%}",
            f"{line['doubt']:.2f}",
        )
    console.print(table)
