"""``biglp suggest``: which rows to label next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from biglp.cli import options as given
from biglp.cli.errors import explained


@explained
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
            rich_help_panel=given.METHOD,
        ),
    ] = 10,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A model.biglp file.", rich_help_panel=given.METHOD),
    ] = None,
    labels: given.Labels = None,
    label_column: given.LabelColumn = None,
    unlabelled: given.Unlabelled = "-1",
    drop: given.Drop = None,
    delimiter: given.Delimiter = None,
    cache: given.Cache = None,
    memory: given.Memory = "auto",
    threads: given.Threads = None,
    engine: given.Engine = "threads",
    device: given.Device = "cpu",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="CSV file with an empty column 'label' to fill in; printed by default.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = None,
    overwrite: given.Overwrite = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Say which rows to label next: those whose labels would help most.

    Rows that the model is in doubt about, typical of others, and not close to each other. One
    sweep over the rows.

    [bold]biglp suggest[/bold] out/ -n 10
    [bold]biglp suggest[/bold] data.parquet --model out/model.biglp --labels labels.csv -o next.csv
    """
    from biglp._core.errors import ParameterError
    from biglp._jobs.suggest import SuggestJob, earlier_run

    known: dict[str, Any] = {"inputs": tuple(inputs), "model": model}
    if model is None:
        if len(inputs) != 1 or not Path(inputs[0]).is_dir():
            raise ParameterError(
                f"nothing says which model knows {inputs[0]}: give --model FILE, or the folder "
                "that biglp fit wrote instead of the rows."
            )
        known = earlier_run(Path(inputs[0]))
    chosen = {
        "labels": labels,
        "label_column": label_column,
        "reading": given.reading_options(drop=drop, delimiter=delimiter),
    }
    known |= {name: value for name, value in chosen.items() if value or name not in known}
    job = SuggestJob(
        output=output or Path(),
        cache=cache,
        engine=engine,
        threads=threads,
        overwrite=overwrite,
        command=given.typed_command(),
        n=n,
        device=device,
        memory=memory,
        **({"unlabelled": given.whole_or_text(unlabelled)} | known),
    )
    _run(job, as_json=as_json, quiet=quiet)


def _run(job: Any, *, as_json: bool, quiet: bool) -> None:
    import json

    from biglp._engines import speaks_to_user
    from biglp.cli.console import ConsoleProgress, results_console

    with ConsoleProgress(quiet) as progress:
        summary = job.run(progress)
    if job.engine == "mpi" and not speaks_to_user():
        return
    if as_json:
        results_console().print_json(json.dumps(summary))
    elif not quiet:
        _show(summary)


def _show(summary: dict[str, Any]) -> None:
    from rich.table import Table

    from biglp._core.memory import format_bytes
    from biglp.cli.console import results_console, seconds
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
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for name in ("row", "label now", "confidence", "doubt"):
        table.add_column(name, justify="left" if name == "label now" else "right")
    for line in found:
        table.add_row(
            str(line["row"]),
            escape(str(line["current_label"])),
            f"{line['confidence']:.1%}",
            f"{line['doubt']:.2f}",
        )
    console.print(table)
