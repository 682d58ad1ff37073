"""``biglp report``: the page that shows a finished fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from biglp._core.parameters import MACHINE, PRINTING
from biglp._files.uri import as_place
from biglp.cli.errors import explained
from biglp.cli.options import Options, argument, output_to, with_options

PAGE = output_to(
    "HTML file; by default report.html in the folder, which is replaced.",
    "FILE",
    None,
    read=as_place,
)


@explained
@with_options
def report(
    folder: Annotated[Any, argument("FOLDER", "Folder that biglp fit wrote.", as_place)],
    *,
    reading: Annotated[Options, ("cache",)],
    machine: Annotated[Options, MACHINE],
    output: Annotated[Any, PAGE],
    results: Annotated[Options, ("overwrite",)],
    printing: Annotated[Options, PRINTING],
) -> None:
    """Write the report of a finished fit: one HTML file to read, print or send.

    biglp fit writes it by itself. This makes it again. A sample of the rows is read; where they are
    gone, it has no map and no rows to look at.

    [bold]biglp report[/bold] out/
    [bold]biglp report[/bold] out/ -o monday.html
    """
    from biglp._jobs.report import ReportJob, report_of_fit
    from biglp.cli.running import job_arguments, run_job

    arguments = job_arguments((), output or Path(), reading, machine, results)
    arguments |= report_of_fit(folder)
    run_job(ReportJob(**arguments), printing, _show)


def _show(summary: dict[str, Any]) -> None:
    from biglp.cli.console import escape, results_console, seconds, show_notes

    show_notes(summary)
    console = results_console()
    for line in summary["missing"]:
        console.print(escape(line), soft_wrap=True)
    console.print(
        f"Written in {seconds(summary['seconds'])}: {escape(summary['files'][0])}", soft_wrap=True
    )
