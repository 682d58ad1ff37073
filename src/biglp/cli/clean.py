"""``biglp clean``: what interrupted runs left on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biglp.cli.errors import explained


@explained
def clean(
    folder: Annotated[
        Path,
        typer.Argument(metavar="[FOLDER]", exists=True, file_okay=False, help="Where to look."),
    ] = Path(),
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove what is listed.")] = False,
    resumable: Annotated[
        bool, typer.Option("--all", help="Also runs that can go on with --resume.")
    ] = False,
) -> None:
    """Find what interrupted runs left on the disk, and remove it with --yes.

    Unfinished runs and old converted rows below a folder, by default the current one, and temporary
    files. Nothing of a running process is touched, no results, and nothing that biglp did not make.

    [bold]biglp clean[/bold] out/
    [bold]biglp clean[/bold] out/ --yes
    """
    from biglp._core.memory import format_bytes
    from biglp._jobs.clean import find_leftovers
    from biglp.cli.console import escape, results_console

    console = results_console()
    found = find_leftovers(folder)
    removed, n_bytes = 0, 0
    wanted = [one for one in found if resumable or not one.resumable]
    for one in found:
        does = "Kept" if one not in wanted else "Would remove"
        if yes and one in wanted:
            does = "Removed" if one.remove() else "In use, kept"
        if does in ("Removed", "Would remove"):
            removed, n_bytes = removed + 1, n_bytes + one.n_bytes
        line = f"{does}: {one.path} ({format_bytes(one.n_bytes)}): {one.what}"
        console.print(escape(line), soft_wrap=True)
    total = f"{removed} {'thing' if removed == 1 else 'things'}, {format_bytes(n_bytes)}"
    if not found:
        console.print(f"Nothing is left below {escape(str(folder))}.", soft_wrap=True)
    elif yes:
        console.print(f"Removed {total}.")
    elif removed:
        console.print(f"{total} in all. Add --yes to remove them.")
    if len(wanted) < len(found):
        console.print("Runs that can go on with --resume are kept; --all takes them too.")
