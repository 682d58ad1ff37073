"""``biglp bench``: biglp beside other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biglp._core.parameters import Parameter, group
from biglp.cli.commands import Command, Group
from biglp.cli.errors import EXIT_CODES, explained
from biglp.cli.options import Options, local_path, output_to, with_options

bench = typer.Typer(
    name="bench", cls=Group, help="Measure biglp beside other libraries.", no_args_is_help=True
)
LIMITS = group(
    None,
    time_limit=Parameter(300.0, "Time that a method may take.", "SECONDS", least=1),
    memory_limit=Parameter("8GB", "Memory that a method may take.", "SIZE"),
    lp_loka=Parameter(
        None,
        "Run LP-LOKA too: the folder with its programs nystrom and lploka.",
        "FOLDER",
        read=local_path,
    ),
    ranks=Parameter(2, "MPI ranks of LP-LOKA.", "N", least=1),
)
PEERS_FOLDER = output_to(
    "Folder for peers.md, results/ and img/.", "FOLDER", Path("bench-out"), read=local_path
)


@bench.command(cls=Command, epilog=EXIT_CODES)
@explained
@with_options
def peers(
    *,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="Numbers of rows.", show_default="1000 to 1000000"),
    ] = None,
    peer: Annotated[Options, LIMITS],
    output: Annotated[Path, PEERS_FOLDER],
    printing: Annotated[Options, ("quiet", "debug")],
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
    limits = Limits(peer.time_limit, parse_memory(peer.memory_limit))
    progress, began = errors_console(), time.perf_counter()

    def say(line: str) -> None:
        if not printing.quiet:
            progress.print(escape(line), soft_wrap=True)

    programs = None if peer.lp_loka is None else LpLoka(peer.lp_loka.resolve(), peer.ranks)
    outcomes = run(rows, limits, Output(output), say, programs)
    if printing.quiet:
        return
    shown, what = verdict(outcomes)
    console = results_console()
    console.print(f"{VERDICTS[shown]}: {escape(what)}", soft_wrap=True)
    console.print(f"Written: {output / 'peers.md'}", soft_wrap=True)
    console.print(f"Total: {seconds(time.perf_counter() - began)}")
