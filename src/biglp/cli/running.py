"""From the options of a command to a job, and running it: bars meanwhile, a summary at the end."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from biglp._core.arrays import unflagged
from biglp._core.checkpoint import differences, read_identity
from biglp._core.errors import CheckpointError, MemoryBudgetError, StoreError
from biglp._engines import speaks_to_user
from biglp._jobs.base import Job
from biglp._jobs.results import describe_kept
from biglp.cli.console import errors_console, progress_bars, results_console
from biglp.cli.errors import escape
from biglp.cli.label_options import Labels
from biglp.cli.options import Machine, Printing, Reading, Results
from biglp.cli.summary import show_summary


def job_arguments(
    inputs: Sequence[str], output: Any, reading: Reading, machine: Machine, results: Results
) -> dict[str, Any]:
    """Arguments that every job takes, from the options of a command."""
    return {
        "inputs": tuple(inputs),
        "output": output,
        "reading": reading.given(),
        "metadata": reading.metadata,
        "cache": reading.cache,
        "engine": machine.engine,
        "threads": machine.threads,
        "outputs": results.outputs,
        "top": results.top,
        "output_format": results.output_format,
        "resume": results.resume,
        "overwrite": results.overwrite,
        "command": typed_command(),
    }


def placing(machine: Machine) -> dict[str, Any]:
    """Parameters that say where the work is done, by the estimators' names."""
    names = ("device", "gpu_memory", "precision", "memory")
    return {name: getattr(machine, name) for name in names}


def added_labels(known: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """Labels of an earlier fit, and those that are named now: these come later and count more."""
    given = labels.given()
    named = {name: value or known.get(name) for name, value in given.items()}
    return named | {"labels": (*known["labels"], *given["labels"])}


def run_job(job: Job, printing: Printing, show: Callable[[dict[str, Any]], None]) -> None:
    """Run a job with progress bars, and print its summary once, in the form that was asked for."""
    with progress_bars(printing.quiet or printing.no_progress) as progress, unflagged():
        summary = job.run(progress)
    if not _prints(job):
        return
    if printing.as_json:
        results_console().print_json(json.dumps(summary))
    elif not printing.quiet:
        show(summary)


def run_resumable(job: Job, printing: Printing) -> None:
    """Run a job that writes a result for each row; after an interruption, say how to go on."""
    try:
        run_job(job, printing, show_summary)
    except (Exception, KeyboardInterrupt) as error:
        if _prints(job) and not isinstance(error, CheckpointError):
            least = error.least if isinstance(error, MemoryBudgetError) else None
            _say_what_is_kept(job, None if least is None else f"{-(-least >> 20)}MB")
        raise


def typed_command() -> str:
    """What the user typed."""
    return shlex.join(["biglp", *sys.argv[1:]])


def _prints(job: Job) -> bool:
    """Whether this process prints: of several MPI processes, the first one does."""
    return job.engine != "mpi" or speaks_to_user()


def _changed(job: Job) -> list[str]:
    """What is different now from the run that is kept, such as a file that was written again."""
    try:
        now = json.loads(json.dumps(job.identity()))
        return differences(read_identity(job.destination.run_folder), now)
    except StoreError:  # out of reach for the moment
        return []
    except Exception as error:  # a file that is gone, a damaged description: no such run either
        return [str(error)]


def _say_what_is_kept(job: Job, memory: str | None) -> None:
    """Name what is kept, and the command that goes on; with more memory where it was too little."""
    folder = job.destination.run_folder
    kept = describe_kept(folder)
    if kept is None:
        return
    changed = _changed(job)
    if changed:
        errors_console().print(
            f"[bold]Kept[/bold] in {escape(str(folder))}: {kept}. That run cannot be gone on with "
            f"now, because {escape('; '.join(changed))}; start afresh with --overwrite.",
            soft_wrap=True,
        )
        return
    words = [word for word in sys.argv[1:] if word not in ("--overwrite", "--resume")]
    if memory is not None:
        words = shlex.split(re.sub(r"--memory[= ]\S+", "", shlex.join(words)))
        words += ["--memory", memory]
    errors_console().print(
        f"[bold]Kept[/bold] in {escape(str(folder))}: {kept}. Go on with\n"
        f"  {escape(shlex.join(['biglp', *words, '--resume']))}",
        soft_wrap=True,
    )
