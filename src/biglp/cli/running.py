"""From the options of a command to a job, and running it: bars meanwhile, a summary at the end."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import typer

from biglp._core.errors import CheckpointError, MemoryBudgetError
from biglp._core.memory import freed_is_kept
from biglp._core.parameters import LABELS, PLACING
from biglp._engines import ENGINES
from biglp._jobs.identity import changed_since
from biglp._jobs.job import STDOUT_FOLDER, Job, from_stdin
from biglp._jobs.results import unfinished_work
from biglp.cli.console import errors_console, escape, progress_bars, results_console
from biglp.cli.options import Options
from biglp.cli.summary import show_summary


def job_arguments(
    inputs: Sequence[str], output: Any, reading: Options, machine: Options, results: Options
) -> dict[str, Any]:
    """Arguments that every job takes, from the options of a command."""
    if results.probabilities and results.top is not None:
        raise typer.BadParameter("give --probabilities for all classes or --top K for some.")
    outputs = ["label"]
    if results.confidence:
        outputs.append("confidence")
    if results.probabilities or results.top is not None:
        outputs.append("probabilities")
    return {
        "inputs": tuple(inputs),
        "output": output,
        "reading": reading_arguments(reading),
        "metadata": reading.metadata,
        "cache": reading.cache,
        "engine": machine.engine,
        "threads": machine.threads,
        "outputs": tuple(outputs),
        "top": results.top,
        "output_format": results.output_format,
        "resume": results.resume,
        "overwrite": results.overwrite,
        "command": shlex.join(["biglp", *sys.argv[1:]]),
    }


def reading_arguments(reading: Options) -> dict[str, Any]:
    """Options of the reader that were given; cache and metadata are the job's affair."""
    return {k: v for k, v in reading.chosen().items() if k not in ("cache", "metadata")}


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


def placing(machine: Options) -> dict[str, Any]:
    """Parameters that say where the work is done, by the estimators' names."""
    return {name: getattr(machine, name) for name in PLACING}


def run_job(job: Job, printing: Options, show: Callable[[dict[str, Any]], None]) -> None:
    """Run a job with progress bars, and print its summary once, in the form that was asked for."""
    quiet = printing.quiet or printing.no_progress
    # Rows may hold any numbers, and what comes of them is checked where it matters.
    unflagged = np.errstate(all="ignore")
    with progress_bars(quiet) as progress, unflagged, freed_is_kept():
        summary = job.run(progress)
    if not _prints(job):
        return
    if printing.as_json:
        results_console().print_json(json.dumps(summary))
    elif not printing.quiet:
        show(summary)


def _prints(job: Job) -> bool:
    """Whether this process prints: of several MPI processes, the first one does."""
    return job.engine not in ENGINES or ENGINES[job.engine].speaks_to_user()


def run_resumable(job: Job, printing: Options) -> None:
    """Run a job that writes a result for each row; after an interruption, say how to go on."""
    try:
        run_job(job, printing, show_summary)
    except (Exception, KeyboardInterrupt) as error:
        if _prints(job) and not isinstance(error, CheckpointError):
            _say_what_is_stored(job, error)
        raise


def _say_what_is_stored(job: Job, error: BaseException) -> None:
    """Name what is stored, and the command that goes on; with more memory if it was too little."""
    folder = job.destination.run_folder
    stored = unfinished_work(folder)
    if stored is None or job.destination.path.parent.name.startswith(STDOUT_FOLDER):
        return
    message = f"[bold]Kept[/bold] in {escape(str(folder))}: {stored}. "
    gone = "what came through standard input is gone"
    changed = [gone] if from_stdin(job.inputs) else changed_since(job)
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
