"""``biglp datasets``: list, fetch and find the paper's data sets."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any

import typer

from biglp._core.parameters import PRINTING, Parameter
from biglp.cli.commands import Command, Group
from biglp.cli.errors import EXIT_CODES, escape, explained
from biglp.cli.options import Options, with_options

datasets = typer.Typer(
    name="datasets",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, fetch and find the paper's data sets.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Data set; see biglp datasets list.")]
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
    from biglp.cli.console import plain_table, results_console
    from biglp.datasets.places import cache_folder
    from biglp.datasets.registry import entry, names

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
    console.print("Get one with: biglp datasets fetch NAME")


@datasets.command(cls=Command, epilog=EXIT_CODES)
@explained
@with_options
def fetch(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Data sets; see biglp datasets list.")
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

    [bold]biglp datasets fetch[/bold] susy mnist8m

    A fetch that broke off goes on where it stopped. The files go to BIGLP_CACHE, or to the user's
    cache folder.
    """
    import json
    import time

    from biglp import datasets
    from biglp._core.memory import format_bytes
    from biglp.cli.console import progress_bars, results_console, seconds
    from biglp.datasets.registry import entry

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
    from biglp.cli.console import results_console
    from biglp.datasets.loading import missing_message
    from biglp.datasets.registry import entry

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
    from biglp.datasets.places import prepared_folder, read_meta, state

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

    from biglp.datasets.places import cache_folder, data_folder

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
