"""``biglp inspect``: what a file is, what its labels are, and what each method would take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from biglp._core.parameters import LABELS, READING, Parameter
from biglp.cli.errors import explained
from biglp.cli.options import Inputs, Options, piped

FULL = Parameter(False, "Try methods on more rows: sharper estimates, later.")
MOST_CLASSES, MOST_COLUMNS = 12, 60
PLAIN = "number"
"""What is done with a column that is a feature as it is."""


@explained
@piped("nothing")
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
    from biglp._jobs.fit import FitJob
    from biglp._jobs.inspect import survey
    from biglp.cli.console import escape, progress_bars, results_console, show_notes
    from biglp.cli.running import job_arguments, label_arguments

    job = FitJob(
        **job_arguments(inputs, Path(), reading, machine, method=method), **label_arguments(labels)
    )
    with progress_bars(printing.no_progress) as progress:
        facts = survey(job, progress, full=full)
    if printing.as_json:
        results_console().print_json(json.dumps(facts))
        return
    show_notes(facts)
    _show_file(facts)
    _show_labels(facts)
    if facts["problem"] is None:
        _show_methods(facts)
    else:
        results_console().print(f"No method can be tried: {escape(facts['problem'])}")


def _show_file(facts: dict[str, Any]) -> None:
    from collections import Counter

    from biglp._core.memory import format_bytes
    from biglp.cli.console import escape, plain_table, results_console

    console, columns = results_console(), facts["columns"]
    about = "" if facts["exact"] else "about "
    size = f", {format_bytes(facts['size'])}" if facts["size"] else ""
    kind = f"{facts['dtype']} " if facts["dtype"] else ""
    console.print(
        f"[bold]{escape(facts['name'])}[/bold]: {facts['format']}{size}, {about}"
        f"{facts['rows']:,} rows × {facts['features']:,} {kind}features"
    )
    if facts["converted"]:
        console.print("It is converted to raw rows once, before the first sweep.")
    if not columns:
        if facts["missing_values"]:
            console.print("Missing values: use --missing mean, or leave these rows out.")
        return
    kinds = Counter(column["type"] for column in columns.values())
    console.print("Columns: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common()))
    plain = [name for name, column in columns.items() if column["use"] == PLAIN]
    others = [name for name in columns if name not in plain or columns[name]["missing"]]
    if plain:
        more = f" and {len(plain) - 5} more" if len(plain) > 5 else ""
        console.print(f"Numbers as they are: {', '.join(map(escape, plain[:5]))}{more}")
    if not others:
        return
    if facts["looked_at"] < facts["rows"]:
        console.print(f"In the first {facts['looked_at']:,} rows:")
    table = plain_table("column", "type", "missing", "what is done with it", right=("missing",))
    for name in others[:MOST_COLUMNS]:
        column = columns[name]
        missing = f"{column['missing']:,}" if column["missing"] else ""
        table.add_row(escape(name), escape(column["type"]), missing, escape(column["use"]))
    if len(others) > MOST_COLUMNS:
        table.add_row(f"and {len(others) - MOST_COLUMNS} more")
    console.print(table)


def _show_labels(facts: dict[str, Any]) -> None:
    from biglp.cli.console import escape, plain_table, results_console

    console, labels = results_console(), facts["labels"]
    if labels is None:
        console.print("No labels were named (--label-column NAME or --labels FILE).")
        return
    console.print(f"{sum(labels.values()):,} labelled rows, {len(labels):,} classes:")
    table = plain_table("class", "labels", right=("labels",))
    for name, count in sorted(labels.items(), key=lambda item: -item[1])[:MOST_CLASSES]:
        table.add_row(escape(name), f"{count:,}")
    if len(labels) > MOST_CLASSES:
        table.add_row(f"and {len(labels) - MOST_CLASSES} more")
    console.print(table)


def _show_methods(facts: dict[str, Any]) -> None:
    from biglp._core.memory import format_bytes
    from biglp.cli.console import plain_table, results_console, seconds

    right = ("landmarks", "time", "memory")
    table = plain_table("method", "options of biglp fit", *right, right=right)
    for method in facts["methods"]:
        if method["seconds"] is None:
            cells = ["", "does not fit", f"needs {format_bytes(method['memory'])}"]
        else:
            cells = [seconds(method["seconds"]), format_bytes(method["memory"])]
            cells.insert(0, f"{method['landmarks']:,}" if method["landmarks"] else "")
        table.add_row(method["name"], method["options"], *cells)
    console = results_console()
    console.print(
        f"Estimates with {facts['threads']} threads and {format_bytes(facts['memory'])} of memory "
        "(--memory):"
    )
    console.print(table)
