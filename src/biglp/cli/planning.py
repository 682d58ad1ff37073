"""``biglp fit --dry-run``: what would be done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from biglp._core.memory import format_bytes
from biglp._jobs.inspect.survey import plan
from biglp.cli.console import results_console, seconds
from biglp.cli.errors import escape

if TYPE_CHECKING:
    from biglp._jobs.fit import FitJob


def show_plan(job: FitJob, as_json: bool) -> None:
    """Check a job and say what it would do."""
    found = plan(job)
    console = results_console()
    if as_json:
        console.print_json(json.dumps(found))
        return
    labels = found["labels"]
    kept = "remembered between sweeps" if found["remembered"] else "computed again in each sweep"
    console.print(
        f"[bold]{escape(found['input'])}[/bold]: {found['format']}, {found['rows']:,} rows × "
        f"{found['features']:,} features, {sum(labels.values()):,} labels of "
        f"{len(labels):,} classes"
    )
    console.print(
        f"{found['settings']['factor']}, {found['landmarks']:,} landmarks; "
        f"{found['threads']} threads, {found['rows_a_block']:,} rows a block; features {kept}"
    )
    console.print(
        f"About {seconds(found['seconds'])} and {format_bytes(found['memory'])} of memory. "
        f"Would write to {escape(found['output'])}; nothing was written."
    )
