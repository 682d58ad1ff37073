"""``biglp check``: which of the given labels are probably wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from biglp._core.parameters import LABELS, MACHINE, METHOD, PRINTING, READING, TASKS, chosen
from biglp._files.uri import as_place
from biglp.cli.errors import explained
from biglp.cli.options import Options, argument, output_to, piped

SHOWN = 10
"""Labels that are printed; a file holds all of them."""
LIST = output_to(
    "CSV file for the whole list, or - for standard output; its head is printed.",
    "FILE",
    None,
    read=as_place,
)


@explained
@piped("table")
def check(
    inputs: Annotated[
        list[str],
        argument(
            "FOLDER | INPUT",
            "Folder that biglp fit wrote, whose rows, labels and options are used; or rows, "
            "with their labels.",
        ),
    ],
    *,
    least: Annotated[float | None, TASKS["least"]],
    labels: Annotated[Options, LABELS],
    reading: Annotated[Options, READING],
    method: Annotated[Options, METHOD],
    machine: Annotated[Options, MACHINE],
    output: Annotated[Any, LIST],
    results: Annotated[Options, ("overwrite",)],
    printing: Annotated[Options, PRINTING],
) -> None:
    """Say which of the given labels are probably wrong, and which would be right.

    Every label is compared with what the other labels and all rows say of its row. Takes what a
    fit takes, less its last sweep; no row is labelled.

    [bold]biglp check[/bold] out/
    [bold]biglp check[/bold] data.parquet --label-column y -o doubtful.csv
    """
    from biglp._jobs.check import CheckJob, check_of_fit
    from biglp._jobs.results import SUMMARY
    from biglp.cli.running import added_labels, job_arguments, label_arguments, run_job

    arguments: dict[str, Any] = {
        **job_arguments(inputs, output or Path(), reading, machine, results, method),
        **label_arguments(labels),
    }
    folder = as_place(inputs[0])
    named = bool(labels.labels) or labels.label_column is not None
    if len(inputs) == 1 and folder.is_dir() and ((folder / SUMMARY).exists() or not named):
        known = check_of_fit(folder)
        known["reading"] |= arguments["reading"]
        arguments["parameters"] |= known["parameters"] | chosen(vars(method))
        arguments |= {name: known[name] for name in ("fit", "inputs", "reading")}
        arguments |= added_labels(known, labels)
        arguments["metadata"] = reading.metadata or known["metadata"]
    run_job(CheckJob(**arguments, least=least), printing, _show)


def _show(summary: dict[str, Any]) -> None:
    from biglp._jobs.check import CheckJob
    from biglp.cli import console as to

    to.show_notes(summary)
    console, lines = to.results_console(), summary["doubtful"]
    checked, given = summary["checked_labels"], summary["labelled_rows"]
    console.print(
        f"[bold green]Probably wrong: {summary['probably_wrong_labels']:,} of {given:,} "
        f"labels[/bold green], found in {to.seconds(summary['seconds'])} with "
        f"{to.format_bytes(summary['peak_memory'])} of memory"
    )
    console.print(
        f"Listed: {len(lines):,}; of all labels about {summary['label_error_rate']:.1%} seem to be "
        "wrong"
    )
    if checked < given:
        console.print(
            f"Not looked at: {given - checked:,}, being the only labels of their classes or too "
            "few to hold some out"
        )
    if summary["files"]:
        console.print(f"Written: {', '.join(summary['files'])}", soft_wrap=True)
    if not lines:
        return
    right = ("row", "probability", "of suggested", "wrong")
    ids = [name for name in lines[0] if name not in CheckJob.columns]
    table = to.plain_table(
        "row", *ids, "label", "probability", "suggested", *right[2:], right=right
    )
    for line in lines[:SHOWN]:
        table.add_row(
            str(line["row"]),
            *(to.escape(str(line[name])) for name in ids),
            to.escape(str(line["label"])),
            f"{line['probability']:.1%}",
            to.escape(str(line["suggested_label"])),
            f"{line['suggested_probability']:.1%}",
            f"{line['wrong']:.1%}",
        )
    if len(lines) > SHOWN:
        rest = "" if summary["files"] else "; give -o FILE for all"
        table.add_row("…", f"{len(lines) - SHOWN:,} more{rest}")
    console.print(table)
    then = ", then" if summary["next"] else ", then fit again with --overwrite."
    console.print(
        f"Look at these rows from the top down. Where a label is wrong, correct it in "
        f"{to.escape(summary['labels_in'])}{then}",
        soft_wrap=True,
    )
    for command in summary["next"]:
        console.print(f"  {to.escape(command)}", soft_wrap=True)
