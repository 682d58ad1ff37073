"""``biglp simulate``: made-up rows with class structure, for trying things out at any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biglp._core.parameters import PRINTING, Parameter, group
from biglp.cli.errors import explained
from biglp.cli.options import Options, local_path, output_to, with_options

FILE = output_to("File for the rows; labels and truth go beside it.", "FILE.npy", read=local_path)
CLUSTERS = group(
    None,
    classes=Parameter(2, "Classes.", "N", least=2),
    clusters=Parameter(3, "Clusters of a class.", "N", least=1),
    separation=Parameter(6.0, "Distance between clusters.", "D", least=0),
    noise=Parameter(1.0, "Spread of a cluster.", "S", least=0),
    labels=Parameter(100, "Labelled rows of a class.", "N", flag="--labels-per-class", least=0),
    seed=Parameter(0, "Seed.", "N", least=0),
)


@explained
@with_options
def simulate(
    rows: Annotated[
        str, typer.Argument(metavar="ROWS", help="Number of rows, such as 50000 or 10M.")
    ],
    features: Annotated[str, typer.Argument(metavar="FEATURES", help="Number of features.")],
    output: Annotated[Path, FILE],
    *,
    simulated: Annotated[Options, CLUSTERS],
    machine: Annotated[Options, ("threads",)],
    results: Annotated[Options, ("overwrite",)],
    printing: Annotated[Options, PRINTING],
) -> None:
    """Write made-up rows, some labels (-1 elsewhere) and the truth.

    [bold]biglp simulate[/bold] 10M 100 -o sim.npy

    The same rows can be had without a file: biglp fit sim:10Mx100 -o out/
    """
    import json
    import time

    from biglp._core.errors import OutputError, ParameterError
    from biglp._core.memory import format_bytes
    from biglp._engines.base import available_cores
    from biglp._files.local import free_space
    from biglp._rows.simulated import Simulation, write_simulation
    from biglp.cli.console import progress_bars, results_console, seconds

    settings = vars(simulated)
    written = ",".join(f"{name}={value}" for name, value in settings.items())
    simulation = Simulation.parse(f"sim:{rows}x{features},{written}")
    if output.suffix != ".npy":
        raise ParameterError(f"{output} must end in .npy, the format that is written.")
    beside = [output.with_name(f"{output.stem}.{name}.npy") for name in ("labels", "truth")]
    there = [path for path in (output, *beside) if path.exists()]
    if there and not results.overwrite:
        raise ParameterError(f"{there[0]} is there already; give --overwrite to replace it.")
    size = simulation.n_rows * (4 * simulation.n_features + 4)
    free = free_space(output.parent)
    if size > free:
        raise OutputError(
            f"{output} would take {format_bytes(size)}, but {format_bytes(free)} are free there. "
            f"Make fewer rows, or use sim:{rows}x{features} as input of biglp fit: it needs no "
            "file."
        )
    began = time.perf_counter()
    with progress_bars(printing.quiet or printing.no_progress) as progress:
        output.parent.mkdir(parents=True, exist_ok=True)
        paths = write_simulation(
            output, simulation, n_threads=machine.threads or available_cores(), progress=progress
        )
    taken = time.perf_counter() - began
    console = results_console()
    if printing.as_json:
        facts = {name: str(path) for name, path in paths.items()}
        console.print_json(json.dumps({**settings, "files": facts, "seconds": round(taken, 3)}))
    elif not printing.quiet:
        console.print(
            f"[bold green]{simulation.n_rows:,} rows × {simulation.n_features:,} features"
            f"[/bold green] ({format_bytes(size)}) in {seconds(taken)}"
        )
        console.print(
            f"Written: {', '.join(str(paths[name]) for name in ('rows', 'labels', 'truth'))}"
        )
