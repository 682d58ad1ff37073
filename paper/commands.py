"""The commands of ``python -m paper``: the paper's experiments, peers, and the data sets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from biglp._core.errors import ParameterError
from biglp._core.parameters import PRINTING, Parameter, group
from biglp.cli import Command, Group
from biglp.cli.errors import EXIT_CODES, explained
from biglp.cli.options import Options, local_path, output_to, with_options
from paper.pages import Output, Part, require_matplotlib

# --------------------------------------------------------------------------------------------------
# ``peers``: biglp beside other libraries.


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
VERDICTS = {True: "[green]shown[/green]", False: "[red]not shown[/red]", None: "cannot be said"}
"""Words for whether an experiment showed what it was to show."""


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

    [bold]python -m paper peers[/bold] --sizes 1000,20000 --time-limit 120

    Peers: scikit-learn's LabelSpreading (knn and rbf), Nystroem + logistic regression and 5-NN;
    graphlearning where it is installed (pip install "biglp\[peers]"); LP-LOKA, the C++/MPI program
    of the paper's group, where --lp-loka says where it was built.
    """
    import time

    from biglp._core.errors import ParameterError
    from biglp._core.memory import parse_memory
    from biglp.cli.console import errors_console, escape, results_console, seconds
    from paper.lploka import LpLoka
    from paper.pages import Output
    from paper.peers import SIZES, Limits, run, verdict

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


# --------------------------------------------------------------------------------------------------
# ``datasets``: list, fetch and find the paper's data sets.


datasets = typer.Typer(
    name="datasets",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, fetch and find the paper's data sets.",
)
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Data set; 'datasets list' has their names.")
]
ROWS = Parameter(None, "Rows to make, such as 1.6M; for mnist-deformed.", "N")
DISCARD = Parameter(False, "Keep the converted rows only.", flag="--discard-downloads")
_SCALES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


@datasets.command("list", cls=Command, epilog=EXIT_CODES)
@explained
@with_options
def list_all(*, printing: Annotated[Options, ("as_json", "debug")]) -> None:
    """List the data sets, what they hold, and whether they are here.

    [bold]cached[/bold]: fetched and ready. [bold]here[/bold]: in the folder BIGLP_DATA.
    [bold]stand-in[/bold]: missing, but a smaller file in BIGLP_DATA can take its place.
    """
    from biglp._core.memory import format_bytes
    from biglp.cli.console import escape, plain_table, results_console
    from paper.datasets.registry import cache_folder, entry, names

    found = [_facts(entry(name)) for name in names()]
    console = results_console()
    if printing.as_json:
        import json

        console.print_json(json.dumps(found))
        return
    head = ("name", "rows × features", "classes", "size", "state", "where")
    table = plain_table(*head, right=("rows × features", "size"), space=1)
    for facts in found:
        table.add_row(
            facts["name"],
            f"{facts['rows']:,} × {facts['features']:,}",
            ", ".join(map(str, facts["classes"])),
            format_bytes(facts["size"]) if facts["size"] else "",
            facts["state"],
            escape(_short_place(facts)),
        )
    console.print(table)
    cache = str(cache_folder()).replace(os.path.expanduser("~"), "~", 1)
    console.print(f"The cache is {escape(cache)}", soft_wrap=True)
    console.print("Get one with: python -m paper datasets fetch NAME")


@datasets.command(cls=Command, epilog=EXIT_CODES)
@explained
@with_options
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Data sets; 'datasets list' has their names."),
    ],
    *,
    rows: Annotated[str | None, ROWS],
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Server to use in the publisher's place.",
            envvar="BIGLP_MIRROR",
            show_envvar=True,
        ),
    ] = None,
    discard: Annotated[bool, DISCARD],
    printing: Annotated[Options, PRINTING],
) -> None:
    """Download data sets, check them, and convert them once.

    [bold]python -m paper datasets fetch[/bold] susy mnist8m

    A fetch that broke off goes on where it stopped. The files go to BIGLP_CACHE, or to the user's
    cache folder.
    """
    import json
    import time

    from biglp._core.memory import format_bytes
    from biglp.cli.console import escape, progress_bars, results_console, seconds
    from paper import datasets
    from paper.datasets.registry import entry

    chosen = [entry(name) for name in names]  # a wrong name is found before anything is fetched
    count = None if rows is None else _count(rows)
    done = []
    console = results_console()
    for known in chosen:
        began = time.perf_counter()
        with progress_bars(printing.quiet or printing.no_progress) as progress:
            place = datasets.fetch(
                known.name, mirror=mirror, rows=count, keep_downloads=not discard, progress=progress
            )
        facts = {**_facts(known), "where": str(place)}
        done.append(facts)
        if not (printing.as_json or printing.quiet):
            size = f" ({format_bytes(facts['size'])})" if facts["size"] else ""
            console.print(
                f"[bold green]{known.name}[/bold green]: {facts['rows']:,} rows × "
                f"{facts['features']:,} features{size} in {seconds(time.perf_counter() - began)}"
            )
            console.print(f"In: {escape(str(place))}", soft_wrap=True)
    if printing.as_json:
        console.print_json(json.dumps(done))


@datasets.command(cls=Command, epilog=EXIT_CODES)
@explained
@with_options
def where(name: Name, *, printing: Annotated[Options, ("as_json", "debug")]) -> None:
    """Say where a data set is.

    Exit code 3 when it is not here, and how to get it.
    """
    import json

    from biglp._core.errors import BadRowsError
    from biglp.cli.console import escape, results_console
    from paper.datasets.loading import missing_message
    from paper.datasets.registry import entry

    known = entry(name)
    facts = _facts(known)
    console = results_console()
    if printing.as_json:
        console.print_json(json.dumps(facts))
    elif facts["state"] in ("cached", "here", "simulated"):
        console.print(escape(facts["where"]), soft_wrap=True)
    else:
        raise BadRowsError(missing_message(known))


def _facts(known: Any) -> dict[str, Any]:
    """What the commands show about a data set."""
    from paper.datasets.registry import prepared_folder, read_meta, state

    found, place = state(known)
    folder = prepared_folder(known)
    meta = read_meta(folder) if folder is not None else {}
    rows = int(meta.get("rows", known.rows))
    return {
        "name": known.name,
        "title": known.title,
        "rows": rows,
        "features": known.features,
        "classes": list(known.classes),
        "size": known.prepared_bytes * rows // known.rows,
        "state": found,
        "where": place,
        "licence": known.licence,
        "citation": known.citation,
        "addresses": [url for file in known.files for url in file.urls],
    }


def _short_place(facts: dict[str, Any]) -> str:
    """Where a data set is, short enough for a table."""
    from pathlib import Path

    from paper.datasets.registry import cache_folder, data_folder

    if facts["state"] == "missing":
        return ""
    if facts["state"] == "simulated":
        return str(facts["where"]).partition(",")[0]
    for folder, name in ((data_folder(), "$BIGLP_DATA"), (cache_folder(), "cache")):
        if folder is not None and Path(facts["where"]).is_relative_to(folder):
            return f"{name}/{Path(facts['where']).relative_to(folder)}"
    return str(facts["where"])


def _count(text: str) -> int:
    """Read a number of rows such as 1.6M."""
    found = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?)([KMG]?)", text.strip(), re.I)
    value = float(found[1].replace("_", "")) * _SCALES[found[2].upper()] if found else 0.5
    if round(value, 6) != round(value):
        raise typer.BadParameter(f"--rows {text!r} is not a whole number, such as 50000 or 1.6M.")
    return round(value)


# --------------------------------------------------------------------------------------------------
# ``reproduce``: the paper's experiments, beside ours.


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

    [bold]python -m paper reproduce[/bold] all --quick -o reproduce-out/

    Real data is taken from the folder that BIGLP_DATA names; what is missing is said and left out.
    Needs matplotlib: pip install "biglp\[plot]".
    """
    import time

    from biglp.cli.console import errors_console, escape, results_console, seconds

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


# --------------------------------------------------------------------------------------------------


EXPERIMENTS = ("tables", "runtime", "memory", "convergence", "scale")
Say = Callable[[str], None]


def run_experiments(
    wanted: str, folder: Path, *, quick: bool, say: Say, file: Path | None = None
) -> list[Part]:
    """Run one experiment or all of them, and write what each found as soon as it ends.

    Parameters
    ----------
    wanted : str
        One of EXPERIMENTS, or "all".
    folder : Path
        Where ``paper.md``, ``results/`` and ``img/`` go.
    quick : bool
        Fewer trials and rows.
    say : callable
        Called with lines about the progress.
    file : Path, optional
        Rows for the scale experiment, written by ``biglp simulate``.
    """
    if wanted not in (*EXPERIMENTS, "all"):
        raise ParameterError(
            f"{wanted!r} is not an experiment; use {', '.join(EXPERIMENTS)} or all."
        )
    require_matplotlib()
    output, parts = Output(folder), []
    for name in EXPERIMENTS if wanted == "all" else (wanted,):
        say(f"{name}{' (quick)' if quick else ''}")
        for part in _run(name, output, quick, say, file):
            output.keep(part)
            parts.append(part)
    return parts


def _run(name: str, output: Output, quick: bool, say: Say, file: Path | None) -> list[Part]:
    # Each experiment loads what it needs, so that asking for one does not wait for all.
    if name == "tables":
        from paper import tables

        return tables.run(tables.QUICK if quick else tables.FULL, output, say)
    if name in ("runtime", "memory"):
        from paper import processes, ranks

        run = processes.run_time if name == "runtime" else processes.memory
        return [run(ranks.QUICK if quick else ranks.FULL, output, say)]
    if name == "convergence":
        from paper import convergence

        return [convergence.run(convergence.QUICK if quick else convergence.FULL, output, say)]
    from paper import scale

    plan = replace(scale.QUICK if quick else scale.FULL, file=file)
    return [scale.run(plan, output, say)]
