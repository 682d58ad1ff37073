"""``biglp reproduce``: the paper's experiments, beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biglp._core.parameters import Parameter
from biglp.cli.errors import explained
from biglp.cli.options import Options, local_path, output_to, with_options

QUICK = Parameter(False, "Fewer trials and rows: minutes instead of hours.")
FOLDER = output_to(
    "Folder for paper.md, results/ and img/.", "FOLDER", Path("reproduce-out"), read=local_path
)


@explained
@with_options
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="[tables|runtime|memory|convergence|scale|all]", help="Which experiment."
        ),
    ] = "all",
    *,
    quick: Annotated[bool, QUICK],
    output: Annotated[Path, FOLDER],
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE.npy",
            help="Rows for the scale experiment, from biglp simulate. Without it they are made.",
            exists=True,
            show_default=False,
        ),
    ] = None,
    printing: Annotated[Options, ("quiet", "debug")],
) -> None:
    r"""Run the paper's experiments and set its numbers beside ours.

    [bold]biglp reproduce[/bold] all --quick -o reproduce-out/

    Real data is taken from the folder that BIGLP_DATA names; what is missing is said and left out.
    Needs matplotlib: pip install "biglp\[plot]".
    """
    import time

    from biglp._experiments.all import run_experiments
    from biglp.cli.console import VERDICTS, errors_console, results_console, seconds
    from biglp.cli.errors import escape

    progress, began = errors_console(), time.perf_counter()

    def say(line: str) -> None:
        if not printing.quiet:
            progress.print(
                f"[dim]{time.perf_counter() - began:5.0f} s[/dim]  {escape(line)}", soft_wrap=True
            )

    parts = run_experiments(experiment, output, quick=quick, say=say, file=file)
    if printing.quiet:
        return
    console = results_console()
    for part in parts:
        console.print(f"[bold]{escape(part.title)}[/bold]")
        for shown, what in part.verdicts:
            console.print(f"  {VERDICTS[shown]}: {escape(what)}", soft_wrap=True)
        for line in part.missing:
            console.print(f"  left out: {escape(line)}", soft_wrap=True)
    console.print(f"Written: {output / 'paper.md'}", soft_wrap=True)
    used = sum(part.facts["cpu_seconds"] for part in parts if part.name != "classification")
    console.print(f"Total: {seconds(time.perf_counter() - began)}, {used:.0f} s of processor time")
