"""Running a job in front of somebody: bars while it runs, a summary when it has ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from biglp._core.memory import format_bytes
from biglp._engines import speaks_to_user
from biglp._jobs.base import Job
from biglp._jobs.results import describe_kept
from biglp.cli.console import ConsoleProgress, errors_console, results_console, seconds
from biglp.cli.errors import escape
from biglp.cli.options import resuming_command

MOST_CLASSES = 12


def run_job(job: Job, *, as_json: bool, quiet: bool) -> dict[str, Any]:
    """Run a job, show how it goes and what came of it."""
    try:
        with ConsoleProgress(quiet) as progress:
            summary = job.run(progress)
    except (Exception, KeyboardInterrupt):
        say_what_is_kept(job)
        raise
    if job.engine == "mpi" and not speaks_to_user():
        return summary
    if as_json:
        results_console().print_json(json.dumps(summary))
    elif not quiet:
        show_summary(summary)
    return summary


def say_what_is_kept(job: Job) -> None:
    """Say how to go on after an interruption or an error."""
    if job.engine == "mpi" and not speaks_to_user():
        return
    folder = job.destination.run_folder
    kept = describe_kept(folder)
    if kept is not None:
        errors_console().print(
            f"[bold]Kept[/bold] in {escape(str(folder))}: {kept}. Go on with\n"
            f"  {escape(resuming_command())}",
            soft_wrap=True,
        )


def show_summary(summary: dict[str, Any]) -> None:
    """Print the summary of a run."""
    from rich.table import Table

    console, warn = results_console(), errors_console()
    for message in summary["warnings"]:
        warn.print(f"[bold yellow]warning:[/bold yellow] {escape(message)}", soft_wrap=True)
    if summary.get("nothing_to_do"):
        console.print("This run has already ended; nothing was done again.")
    console.print(
        f"[bold green]{summary['rows']:,} rows labelled[/bold green] in "
        f"{seconds(summary['seconds'])} ({summary['rows_per_second']:,} rows/s), "
        f"{format_bytes(summary['peak_memory'])} of memory"
    )
    if "settings" in summary:
        console.print(_method(summary["settings"]))
        for line in _evidence(summary["settings"]):
            console.print(line)
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    table.add_column("class")
    given = summary.get("given")
    if given is not None:
        table.add_column("labels given", justify="right")
    table.add_column("rows found", justify="right")
    table.add_column("share", justify="right")
    found = summary["found"]
    names = (
        sorted(found, key=lambda name: -found[name]) if len(found) > MOST_CLASSES else list(found)
    )
    for name in names[:MOST_CLASSES]:
        counts = [f"{given[name]:,}"] if given is not None else []
        share = found[name] / summary["rows"]
        table.add_row(escape(name), *counts, f"{found[name]:,}", f"{share:.1%}")
    if len(names) > MOST_CLASSES:
        table.add_row(f"and {len(names) - MOST_CLASSES} more")
    console.print(table)
    files = list(summary["files"].values())
    if "settings" in summary:
        files.append(str(Path(files[0]).with_name("summary.json")))
    console.print(f"Written: {', '.join(files)}", soft_wrap=True)


def _method(settings: dict[str, Any]) -> str:
    """One line on what was chosen."""
    parts = [str(settings["factor"])]
    if "landmarks" in settings:
        parts.append(f"{settings['landmarks']:,} landmarks")
    if "bandwidth" in settings:
        parts.append(f"bandwidth {settings['bandwidth']:.3g}")
    if settings.get("alpha") is not None:
        parts.append(f"alpha {settings['alpha']:g}")
    parts.append(f"scaling {settings['scaling']}")
    if settings.get("leave_one_out_accuracy") is not None:
        parts.append(f"{settings['leave_one_out_accuracy']:.1%} of held-out labels found")
    return ", ".join(parts)


def _evidence(settings: dict[str, Any]) -> list[str]:
    """Lines on who was heard, how good that is on held-out labels, and whether to believe it."""
    if "members" not in settings:
        return []
    weights = {item["member"]: item["weight"] for item in settings["members"]}
    total = sum(weights.values()) or 1.0
    graph = sum(weight for name, weight in weights.items() if name.startswith("spread"))
    shares = {"graph": graph} | {
        name: weight for name, weight in weights.items() if not name.startswith("spread")
    }
    heard = ", ".join(f"{name} {weight / total:.0%}" for name, weight in shares.items())
    if settings["held_out_accuracy"] is None:
        return [f"heard: {heard}; too few labels to hold some out"]
    found = f"{settings['held_out_accuracy']:.1%} of held-out labels found"
    if not settings["trustworthy"]:
        labels = settings["held_out_labels"]
        return [f"heard: {heard}; {found}, of only {labels}: more labels would tell more"]
    helped = "helped" if settings["unlabelled_rows_helped"] else "did not help"
    alone = f"{settings['supervised_accuracy']:.1%} without the graph"
    return [f"heard: {heard}; {found} ({alone}: the unlabelled rows {helped})"]
