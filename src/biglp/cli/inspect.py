"""``biglp inspect``: what a file is, what its labels are, and what each method would take."""

from __future__ import annotations

import json
from collections import Counter
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
    from biglp.cli.console import progress_bars, results_console
    from biglp.cli.running import job_arguments, label_arguments

    job = FitJob(
        **job_arguments(inputs, Path(), reading, machine, method=method), **label_arguments(labels)
    )
    with progress_bars(printing.no_progress) as progress:
        facts = survey(job, progress, full=full)
    if printing.as_json:
        results_console().print_json(json.dumps(facts))
    else:
        _show(facts)


def _show(facts: dict[str, Any]) -> None:
    from biglp.cli import console as to

    to.show_notes(facts)
    console, columns, labels = to.results_console(), facts["columns"], facts["labels"]

    # The file, and what is done with each column that is not a number as it is.
    about = "" if facts["exact"] else "about "
    size = f", {to.format_bytes(facts['size'])}" if facts["size"] else ""
    kind = f"{facts['dtype']} " if facts["dtype"] else ""
    console.print(
        f"[bold]{to.escape(facts['name'])}[/bold]: {facts['format']}{size}, {about}"
        f"{facts['rows']:,} rows × {facts['features']:,} {kind}features"
    )
    if facts["converted"]:
        console.print("It is converted to raw rows once, before the first sweep.")
    if columns:
        kinds = Counter(column["type"] for column in columns.values())
        console.print("Columns: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common()))
    elif facts["missing_values"]:
        console.print("Missing values: use --missing mean, or leave these rows out.")
    plain = [name for name, column in columns.items() if column["use"] == PLAIN]
    others = [name for name in columns if name not in plain or columns[name]["missing"]]
    if plain:
        more = f" and {len(plain) - 5} more" if len(plain) > 5 else ""
        console.print(f"Numbers as they are: {', '.join(map(to.escape, plain[:5]))}{more}")
    if others:
        if facts["looked_at"] < facts["rows"]:
            console.print(f"In the first {facts['looked_at']:,} rows:")
        names = ("column", "type", "missing", "what is done with it")
        table = to.plain_table(*names, right=("missing",))
        for name in others[:MOST_COLUMNS]:
            column = columns[name]
            missing = f"{column['missing']:,}" if column["missing"] else ""
            cells = (to.escape(column["type"]), missing, to.escape(column["use"]))
            table.add_row(to.escape(name), *cells)
        if len(others) > MOST_COLUMNS:
            table.add_row(f"and {len(others) - MOST_COLUMNS} more")
        console.print(table)

    # Labels of each class.
    if labels is None:
        console.print("No labels were named (--label-column NAME or --labels FILE).")
    else:
        console.print(f"{sum(labels.values()):,} labelled rows, {len(labels):,} classes:")
        table = to.plain_table("class", "labels", right=("labels",))
        for name, count in sorted(labels.items(), key=lambda item: -item[1])[:MOST_CLASSES]:
            table.add_row(to.escape(name), f"{count:,}")
        if len(labels) > MOST_CLASSES:
            table.add_row(f"and {len(labels) - MOST_CLASSES} more")
        console.print(table)

    # What each method would take.
    if facts["problem"] is not None:
        console.print(f"No method can be tried: {to.escape(facts['problem'])}")
        return
    right = ("landmarks", "time", "memory")
    table = to.plain_table("method", "options of biglp fit", *right, right=right)
    for method in facts["methods"]:
        memory = to.format_bytes(method["memory"])
        if method["seconds"] is None:
            cells = ("", "does not fit", f"needs {memory}")
        else:
            landmarks = f"{method['landmarks']:,}" if method["landmarks"] else ""
            cells = (landmarks, to.seconds(method["seconds"]), memory)
        table.add_row(method["name"], method["options"], *cells)
    console.print(
        f"Estimates with {facts['threads']} threads and {to.format_bytes(facts['memory'])} of "
        "memory (--memory):"
    )
    console.print(table)
