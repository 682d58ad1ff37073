"""``biglp inspect``: what a file is, what its labels are, and what each method would take."""

from __future__ import annotations

from typing import Annotated, Any

from biglp._core.parameters import LABELS, READING, Parameter
from biglp.cli.errors import escape, explained
from biglp.cli.options import Inputs, Options, with_options
from biglp.cli.pipes import piped

FULL = Parameter(False, "Try methods on more rows: sharper estimates, later.")
MOST_COLUMNS, MOST_TOLD = 12, 60
PLAIN = "number"
"""What is done with a column that is a feature as it is."""


@explained
@piped("nothing")
@with_options
def inspect(
    inputs: Inputs,
    *,
    labels: Annotated[Options, LABELS],
    reading: Annotated[Options, [name for name in READING if name not in ("dtype", "cache")]],
    method: Annotated[Options, ("n_landmarks",)],
    machine: Annotated[Options, ("memory", "threads", "device", "gpu_memory")],
    full: Annotated[bool, FULL],
    printing: Annotated[Options, ("as_json", "no_progress", "debug")],
) -> None:
    """Say what a file is, what its labels are, and what each method would take.

    Nothing is converted or written. Times are measured on a few rows on this machine.

    [bold]biglp inspect[/bold] data.parquet --label-column y
    """
    from pathlib import Path

    from biglp._jobs.fit import FitJob
    from biglp._jobs.inspect import survey
    from biglp.cli.console import progress_bars, results_console
    from biglp.cli.running import label_arguments, reading_arguments

    names = ("memory", "device", "gpu_memory")
    job = FitJob(
        tuple(inputs),
        Path(),
        **label_arguments(labels),
        metadata=reading.metadata,
        reading=reading_arguments(reading),
        threads=machine.threads,
        parameters={**vars(method), **{name: getattr(machine, name) for name in names}},
    )
    with progress_bars(printing.no_progress) as progress:
        found = survey(job, progress, full=full)
    console = results_console()
    if printing.as_json:
        import json

        console.print_json(json.dumps(found))
        return
    from biglp.cli.summary import show_told

    show_told(found)
    _show_file(console, found)
    _show_columns(console, found)
    _show_labels(console, found)
    if found["problem"] is None:
        _show_methods(console, found)
    else:
        console.print(f"No method can be tried: {escape(found['problem'])}")


def _show_file(console: Any, found: dict[str, Any]) -> None:
    from biglp._core.memory import format_bytes

    name = escape(found["name"])
    about = "" if found["exact"] else "about "
    size = f", {format_bytes(found['size'])}" if found["size"] else ""
    kind = f"{found['dtype']} " if found["dtype"] else ""
    console.print(
        f"[bold]{name}[/bold]: {found['format']}{size}, {about}{found['rows']:,} rows × "
        f"{found['features']:,} {kind}features"
    )
    if found["converted"]:
        console.print("It is converted to raw rows once, before the first sweep.")


def _show_columns(console: Any, found: dict[str, Any]) -> None:
    from collections import Counter

    from biglp.cli.console import plain_table

    columns = found["columns"]
    if not columns:
        if found["missing_values"]:
            console.print("Missing values: use --missing mean, or leave these rows out.")
        return
    kinds = Counter(column["type"] for column in columns.values())
    console.print("Columns: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common()))
    plain = [name for name, column in columns.items() if column["use"] == PLAIN]
    told = [name for name in columns if name not in plain or columns[name]["missing"]]
    if plain:
        console.print(f"Numbers as they are: {_some(plain)}")
    if not told:
        return
    if found["looked_at"] < found["rows"]:
        console.print(f"In the first {found['looked_at']:,} rows:")
    table = plain_table("column", "type", "missing", "what is done with it", right=("missing",))
    for name in told[:MOST_TOLD]:
        column = columns[name]
        missing = f"{column['missing']:,}" if column["missing"] else ""
        table.add_row(escape(name), escape(column["type"]), missing, escape(column["use"]))
    if len(told) > MOST_TOLD:
        table.add_row(f"and {len(told) - MOST_TOLD} more")
    console.print(table)


def _show_labels(console: Any, found: dict[str, Any]) -> None:
    from biglp.cli.console import plain_table

    labels = found["labels"]
    if labels is None:
        console.print("No labels were named (--label-column NAME or --labels FILE).")
        return
    total = sum(labels.values())
    console.print(f"{total:,} labelled rows, {len(labels):,} classes:")
    table = plain_table("class", "labels", right=("labels",))
    for name, count in sorted(labels.items(), key=lambda item: -item[1])[:MOST_COLUMNS]:
        table.add_row(escape(name), f"{count:,}")
    if len(labels) > MOST_COLUMNS:
        table.add_row(f"and {len(labels) - MOST_COLUMNS} more")
    console.print(table)


def _show_methods(console: Any, found: dict[str, Any]) -> None:
    from biglp._core.memory import format_bytes
    from biglp.cli.console import plain_table, seconds

    right = ("landmarks", "time", "memory")
    table = plain_table("method", "options of biglp fit", *right, right=right)
    for method in found["methods"]:
        if method["seconds"] is None:
            cells = ["", "does not fit", f"needs {format_bytes(method['memory'])}"]
        else:
            cells = [seconds(method["seconds"]), format_bytes(method["memory"])]
            cells.insert(0, f"{method['landmarks']:,}" if method["landmarks"] else "")
        table.add_row(method["name"], method["options"], *cells)
    console.print(
        f"Estimates with {found['threads']} threads and {format_bytes(found['memory'])} of memory "
        "(--memory):"
    )
    console.print(table)


def _some(names: list[str]) -> str:
    shown = ", ".join(map(escape, names[:5]))
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
