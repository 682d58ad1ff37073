"""``biglp bench``: biglp beside other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biglp.cli.commands import Command, Group
from biglp.cli.errors import EXIT_CODES, explained
from biglp.cli.options import Debug, Quiet, output_to
from biglp.cli.values import local_path

bench = typer.Typer(
    name="bench",
    cls=Group,
    help="Measure biglp beside other libraries.",
    no_args_is_help=True,
)


@bench.command(cls=Command, epilog=EXIT_CODES)
@explained
def peers(
    *,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="Numbers of rows.", show_default="1000 to 1000000"),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Time that a method may take.")
    ] = 300.0,
    memory_limit: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory that a method may take.")
    ] = "8GB",
    lp_loka: Annotated[
        Path | None,
        typer.Option(
            "--lp-loka",
            parser=local_path,
            metavar="FOLDER",
            help="Run LP-LOKA too: the folder with its programs nystrom and lploka.",
        ),
    ] = None,
    ranks: Annotated[int, typer.Option(min=1, metavar="N", help="MPI ranks of LP-LOKA.")] = 2,
    output: Annotated[
        Path,
        output_to(
            parser=local_path, metavar="FOLDER", help="Folder for peers.md, results/ and img/."
        ),
    ] = Path("bench-out"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    r"""Run the same rows and labels through biglp and its peers, until each passes a limit.

    [bold]biglp bench peers[/bold] --sizes 1000,20000 --time-limit 120

    Peers: scikit-learn's LabelSpreading (knn and rbf), Nystroem + logistic regression and 5-NN;
    graphlearning where it is installed (pip install "biglp\[peers]"); LP-LOKA, the C++/MPI program
    of the paper's group, where --lp-loka says where it was built.
    """
    import time

    from biglp._core.errors import ParameterError
    from biglp._core.memory import parse_memory
    from biglp._experiments.lploka import LpLoka
    from biglp._experiments.peer_page import verdict
    from biglp._experiments.peer_runs import Limits
    from biglp._experiments.peers import SIZES, run
    from biglp._experiments.report import Output
    from biglp.cli.console import VERDICTS, errors_console, results_console, seconds
    from biglp.cli.errors import escape

    try:
        rows = [int(float(word)) for word in sizes.split(",")] if sizes else list(SIZES)
    except ValueError as error:
        raise ParameterError(
            f"sizes={sizes!r} is not a list of numbers of rows; write --sizes 1000,20000."
        ) from error
    limits = Limits(time_limit, parse_memory(memory_limit))
    progress, began = errors_console(), time.perf_counter()

    def say(line: str) -> None:
        if not quiet:
            progress.print(escape(line), soft_wrap=True)

    programs = None if lp_loka is None else LpLoka(lp_loka.resolve(), ranks)
    outcomes = run(rows, limits, Output(output), say, programs)
    if quiet:
        return
    shown, what = verdict(outcomes)
    console = results_console()
    console.print(f"{VERDICTS[shown]}: {escape(what)}", soft_wrap=True)
    console.print(f"Written: {output / 'peers.md'}", soft_wrap=True)
    console.print(f"Total: {seconds(time.perf_counter() - began)}")
