"""What is printed about a run: the plan before it (``--dry-run``), the summary after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from biglp._core.memory import format_bytes
from biglp._files.uri import as_place
from biglp._fit.report import about_evidence, about_method
from biglp.cli.console import escape, plain_table, results_console, seconds, show_notes

if TYPE_CHECKING:
    from biglp._jobs.fit import FitJob

MOST_CLASSES = 12


def show_plan(job: FitJob, as_json: bool) -> None:
    """Check a job and say what it would do."""
    from biglp._jobs.inspect import plan

    planned = plan(job)
    console = results_console()
    if as_json:
        console.print_json(json.dumps(planned))
        return
    labels = planned["labels"]
    landmarks = f", {planned['landmarks']:,} landmarks" if planned["landmarks"] else ""
    features = "stored between sweeps" if planned["stored"] else "computed again in each sweep"
    console.print(
        f"[bold]{escape(planned['input'])}[/bold]: {planned['format']}, {planned['rows']:,} rows × "
        f"{planned['features']:,} features, {sum(labels.values()):,} labels of "
        f"{len(labels):,} classes"
    )
    console.print(
        f"{planned['settings']['factor']}{landmarks}; {planned['threads']} threads, "
        f"{planned['rows_a_block']:,} rows a block; features {features}"
    )
    console.print(
        f"About {seconds(planned['seconds'])} and {format_bytes(planned['memory'])} of memory. "
        f"Would write to {escape(planned['output'])}; nothing was written."
    )


def show_summary(summary: dict[str, Any]) -> None:
    """Print the summary of a run that has labelled rows."""
    console, settings = results_console(), summary.get("settings", {})
    show_notes(summary)
    if summary.get("nothing_to_do"):
        console.print("This run has already ended; nothing was done again.")
    console.print(
        f"[bold green]{summary['rows']:,} rows labelled[/bold green] in "
        f"{seconds(summary['seconds'])} ({summary['rows_per_second']:,} rows/s), "
        f"{format_bytes(summary['peak_memory'])} of memory"
    )
    if dropped := settings.get("left_out_columns"):  # though nobody said so
        notes = "; ".join(f"{name}: {why}" for name, why in dropped.items())
        if len(dropped) > MOST_CLASSES:
            notes = f"{len(dropped):,} columns (biglp inspect says which and why)"
        console.print(f"Left out: {escape(notes)}", soft_wrap=True)
    if texts := settings.get("text_columns"):
        console.print(f"Words are counted in {escape(', '.join(texts))}.", soft_wrap=True)
    if settings:
        console.print(escape(about_method(settings, summary.get("given"))))
        for line in about_evidence(settings):
            console.print(escape(line))
    _show_classes(summary["found"], summary.get("given"), summary["rows"])
    files = list(summary["files"].values())
    if settings.get("probably_wrong_labels"):
        lower = ", which count less" if settings["labels_lowered"] else ""
        folder = str(as_place(files[0]).parent)
        console.print(
            f"Probably wrong: {settings['probably_wrong_labels']:,} of "
            f"{summary['labelled_rows']:,} labels{lower} (biglp check {escape(folder)} says which)",
            soft_wrap=True,
        )
    if settings:
        files.append(str(as_place(files[0]).with_name("summary.json")))
    console.print(f"Written: {', '.join(files)}", soft_wrap=True)


def _show_classes(counts: dict[str, int], given: dict[str, int] | None, n_rows: int) -> None:
    """Rows of each class; the largest classes where there are many."""
    right = ("labels given", "rows found", "share")
    table = plain_table("class", *(right if given is not None else right[1:]), right=right)
    many = len(counts) > MOST_CLASSES
    names = sorted(counts, key=lambda name: -counts[name]) if many else list(counts)
    for name in names[:MOST_CLASSES]:
        cells = [f"{given[name]:,}"] if given is not None else []
        table.add_row(escape(name), *cells, f"{counts[name]:,}", f"{counts[name] / n_rows:.1%}")
    if many:
        table.add_row(f"and {len(names) - MOST_CLASSES} more")
    results_console().print(table)
