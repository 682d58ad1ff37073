"""From the options of a command to a job, and running it: bars meanwhile, a summary at the end."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import typer

from biglp._core.errors import CheckpointError, MemoryBudgetError, StoreError
from biglp._core.memory import format_bytes, freed_is_kept
from biglp._core.parameters import LABELS, PLACING, chosen
from biglp._engines import ENGINES
from biglp._files.runfolder import differences, read_identity
from biglp._files.uri import as_place
from biglp._fit.report import about_evidence, about_method
from biglp._jobs.job import STDOUT_FOLDER, Job, from_stdin
from biglp._jobs.results import unfinished_work
from biglp.cli.console import (
    errors_console,
    escape,
    plain_table,
    progress_bars,
    results_console,
    seconds,
    show_notes,
)
from biglp.cli.options import Options

MOST_CLASSES = 12


def job_arguments(
    inputs: Sequence[str],
    output: Any,
    reading: Options,
    machine: Options,
    results: Options | None = None,
    method: Options | None = None,
) -> dict[str, Any]:
    """Arguments that every job takes, from the options of a command."""
    results, method = results or Options(), method or Options()
    given = chosen(vars(reading))
    if results.probabilities and results.top is not None:
        raise typer.BadParameter("give --probabilities for all classes or --top K for some.")
    return {
        "inputs": tuple(inputs),
        "output": output,
        "reading": {k: v for k, v in given.items() if k not in ("cache", "metadata")},
        "metadata": reading.metadata,
        "cache": reading.cache,
        "engine": machine.engine,
        "threads": machine.threads,
        "confidence": results.confidence,
        "probabilities": results.probabilities,
        "top": results.top,
        "output_format": results.output_format,
        "resume": results.resume,
        "overwrite": results.overwrite,
        "command": shlex.join(["biglp", *sys.argv[1:]]),
        "parameters": {**vars(method), **{name: getattr(machine, name) for name in PLACING}},
    }


def label_arguments(labels: Options) -> dict[str, Any]:
    """Where the labels are, as a job takes it."""
    given = {name: getattr(labels, name) for name in LABELS}
    marks = tuple(labels.unlabelled or ()) or None
    return given | {"labels": tuple(labels.labels or ()), "unlabelled": marks}


def added_labels(known: Mapping[str, Any], labels: Options) -> dict[str, Any]:
    """Labels of a finished fit, and those that are named now: these come later and count more."""
    given = label_arguments(labels)
    named = {name: value or known.get(name) for name, value in given.items()}
    return named | {"labels": (*known["labels"], *given["labels"])}


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
        understood = ", and what they mean is looked up" if settings.get("views") else ""
        columns = escape(", ".join(texts))
        console.print(f"Words are counted in {columns}{understood}.", soft_wrap=True)
    if named := settings.get("rows_labelled_by_names"):
        console.print(f"{named:,} rows got their first labels from the names of the classes.")
    if settings:
        console.print(escape(about_method(settings, summary.get("given"))))
        for line in about_evidence(settings):
            console.print(escape(line))

    # Rows of each class; the largest classes where there are many.
    counts, given = summary["found"], summary.get("given")
    right = ("labels given", "rows predicted", "share")
    table = plain_table("class", *(right if given is not None else right[1:]), right=right)
    many = len(counts) > MOST_CLASSES
    names = sorted(counts, key=lambda name: -counts[name]) if many else list(counts)
    for name in names[:MOST_CLASSES]:
        cells = [f"{given[name]:,}"] if given is not None else []
        share = counts[name] / summary["rows"]
        table.add_row(escape(name), *cells, f"{counts[name]:,}", f"{share:.1%}")
    if many:
        table.add_row(f"and {len(names) - MOST_CLASSES} more")
    console.print(table)
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


def run_job(
    job: Job, printing: Options, show: Callable[[dict[str, Any]], None] = show_summary
) -> None:
    """Run a job with progress bars, and print its summary once, in the form that was asked for.

    After an interruption, say how to go on with a job that writes a result for each row.
    """
    # Of several processes of an engine, one prints.
    speaks = job.engine not in ENGINES or ENGINES[job.engine].speaks_to_user()
    try:
        quiet = printing.quiet or printing.no_progress
        with progress_bars(quiet) as progress, np.errstate(all="ignore"), freed_is_kept():
            summary = job.run(progress)
        if speaks and printing.as_json:
            results_console().print_json(json.dumps(summary))
        elif speaks and not printing.quiet:
            show(summary)
    except (Exception, KeyboardInterrupt) as error:
        if speaks and job.resumable and not isinstance(error, CheckpointError):
            _say_what_is_stored(job, error)
        raise


def _say_what_is_stored(job: Job, error: BaseException) -> None:
    """Name what is stored, and the command that goes on; with more memory if it was too little."""
    folder = job.destination.run_folder
    stored = unfinished_work(folder)
    if stored is None or job.destination.path.parent.name.startswith(STDOUT_FOLDER):
        return
    message = f"[bold]Kept[/bold] in {escape(str(folder))}: {stored}. "
    # Why it cannot be gone on with, such as a file that was written again.
    changed = ["what came through standard input is gone"]
    if not from_stdin(job.inputs):
        try:
            again = replace(job)  # the job knows its files as they were when it began
            changed = differences(read_identity(folder), json.loads(json.dumps(again.identity())))
        except StoreError:  # out of reach for the moment
            changed = []
        except Exception as other:  # a file that is gone, a damaged description: no such run either
            changed = [str(other)]
    if changed:
        message += (
            f"That run cannot be gone on with now, because {escape('; '.join(changed))}; start "
            "afresh with --overwrite."
        )
    else:
        words = [word for word in sys.argv[1:] if word not in ("--overwrite", "--resume")]
        if isinstance(error, MemoryBudgetError) and error.least is not None:
            given = [at for at, word in enumerate(words) if word.partition("=")[0] == "--memory"]
            for at in reversed(given):
                del words[at : at + (1 if "=" in words[at] else 2)]
            words += ["--memory", f"{-(-error.least >> 20)}MB"]
        message += f"Go on with\n  {escape(shlex.join(['biglp', *words, '--resume']))}"
    errors_console().print(message, soft_wrap=True)
