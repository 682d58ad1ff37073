"""What is printed about a run: the plan before it (``--dry-run``), the summary after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from biglp._core.memory import format_bytes
from biglp._files.uri import as_place
from biglp._fit.report import about_evidence, about_method
from biglp.cli.console import errors_console, plain_table, results_console, seconds
from biglp.cli.errors import escape

if TYPE_CHECKING:
    from biglp._jobs.fit import FitJob

MOST_CLASSES = 12


def show_plan(job: FitJob, as_json: bool) -> None:
    """Check a job and say what it would do."""
    from biglp._jobs.inspect import plan

    found = plan(job)
    console = results_console()
    if as_json:
        console.print_json(json.dumps(found))
        return
    labels = found["labels"]
    landmarks = f", {found['landmarks']:,} landmarks" if found["landmarks"] else ""
    kept = "stored between sweeps" if found["stored"] else "computed again in each sweep"
    console.print(
        f"[bold]{escape(found['input'])}[/bold]: {found['format']}, {found['rows']:,} rows × "
        f"{found['features']:,} features, {sum(labels.values()):,} labels of "
        f"{len(labels):,} classes"
    )
    console.print(
        f"{found['settings']['factor']}{landmarks}; {found['threads']} threads, "
        f"{found['rows_a_block']:,} rows a block; features {kept}"
    )
    console.print(
        f"About {seconds(found['seconds'])} and {format_bytes(found['memory'])} of memory. "
        f"Would write to {escape(found['output'])}; nothing was written."
    )


def show_summary(summary: dict[str, Any]) -> None:
    """Print the summary of a run."""
    console = results_console()
    show_told(summary)
    if summary.get("nothing_to_do"):
        console.print("This run has already ended; nothing was done again.")
    console.print(
        f"[bold green]{summary['rows']:,} rows labelled[/bold green] in "
        f"{seconds(summary['seconds'])} ({summary['rows_per_second']:,} rows/s), "
        f"{format_bytes(summary['peak_memory'])} of memory"
    )
    left_out = summary.get("settings", {}).get("left_out_columns")
    if left_out:
        console.print(_left_out(left_out), soft_wrap=True)
    texts = summary.get("settings", {}).get("text_columns")
    if texts:
        console.print(f"Words are counted in {escape(', '.join(texts))}.", soft_wrap=True)
    if "settings" in summary:
        console.print(escape(about_method(summary["settings"], summary.get("given"))))
        for line in about_evidence(summary["settings"]):
            console.print(escape(line))
    console.print(_classes(summary))
    files = list(summary["files"].values())
    if summary.get("settings", {}).get("probably_wrong_labels"):
        console.print(_doubts(summary, str(as_place(files[0]).parent)), soft_wrap=True)
    if "settings" in summary:
        files.append(str(as_place(files[0]).with_name("summary.json")))
    console.print(f"Written: {', '.join(files)}", soft_wrap=True)


def show_told(summary: dict[str, Any]) -> None:
    """Print the warnings of a run, and what it has to say of the labels."""
    console, warn = results_console(), errors_console()
    for message in summary["warnings"]:
        warn.print(f"[bold yellow]warning:[/bold yellow] {escape(message)}", soft_wrap=True)
    for line in summary.get("told", ()):
        console.print(escape(line), soft_wrap=True)


def _left_out(columns: dict[str, str]) -> str:
    """Columns that are no features though nobody said so; many by their names only."""
    if len(columns) > MOST_CLASSES:
        shown = f"{len(columns):,} columns (biglp inspect says which and why)"
    else:
        shown = "; ".join(f"{name}: {why}" for name, why in columns.items())
    return f"Left out: {escape(shown)}"


def _classes(summary: dict[str, Any]) -> Any:
    """Rows of each class; the largest classes where there are many."""
    given, found = summary.get("given"), summary["found"]
    right = ("labels given", "rows found", "share")
    table = plain_table("class", *(right if given is not None else right[1:]), right=right)
    many = len(found) > MOST_CLASSES
    names = sorted(found, key=lambda name: -found[name]) if many else list(found)
    for name in names[:MOST_CLASSES]:
        counts = [f"{given[name]:,}"] if given is not None else []
        share = found[name] / summary["rows"]
        table.add_row(escape(name), *counts, f"{found[name]:,}", f"{share:.1%}")
    if many:
        table.add_row(f"and {len(names) - MOST_CLASSES} more")
    return table


def _doubts(summary: dict[str, Any], folder: str) -> str:
    """A line on labels that are probably wrong."""
    settings = summary["settings"]
    lower = ", which count less" if settings["labels_lowered"] else ""
    return (
        f"Probably wrong: {settings['probably_wrong_labels']:,} of {summary['labelled_rows']:,} "
        f"labels{lower} (biglp check {escape(folder)} says which)"
    )
