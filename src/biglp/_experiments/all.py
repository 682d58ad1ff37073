"""All experiments by name, quick and full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from biglp._core.errors import ParameterError
from biglp._experiments.plots import require_matplotlib
from biglp._experiments.report import Output, Part

EXPERIMENTS = ("tables", "runtime", "memory", "convergence", "scale")
Say = Callable[[str], None]


def run_experiments(
    wanted: str, folder: Path, *, quick: bool, say: Say, file: Path | None = None
) -> list[Part]:
    """Run one experiment or all of them, and write what each found as soon as it ends.

    Parameters
    ----------
    wanted : str
        One of EXPERIMENTS, or "all".
    folder : Path
        Where ``paper.md``, ``results/`` and ``img/`` go.
    quick : bool
        Fewer trials and rows.
    say : callable
        Called with lines about the progress.
    file : Path, optional
        Rows for the scale experiment, written by ``biglp simulate``.
    """
    if wanted not in (*EXPERIMENTS, "all"):
        raise ParameterError(
            f"{wanted!r} is not an experiment; use {', '.join(EXPERIMENTS)} or all."
        )
    require_matplotlib()
    output, parts = Output(folder), []
    for name in EXPERIMENTS if wanted == "all" else (wanted,):
        say(f"{name}{' (quick)' if quick else ''}")
        for part in _run(name, output, quick, say, file):
            output.keep(part)
            parts.append(part)
    return parts


def _run(name: str, output: Output, quick: bool, say: Say, file: Path | None) -> list[Part]:
    # Each experiment loads what it needs, so that asking for one does not wait for all.
    if name == "tables":
        from biglp._experiments import tables, tables_page

        return tables_page.run(tables.QUICK if quick else tables.FULL, output, say)
    if name in ("runtime", "memory"):
        from biglp._experiments import processes, ranks

        run = processes.run_time if name == "runtime" else processes.memory
        return [run(ranks.QUICK if quick else ranks.FULL, output, say)]
    if name == "convergence":
        from biglp._experiments import convergence

        return [convergence.run(convergence.QUICK if quick else convergence.FULL, output, say)]
    from biglp._experiments import scale

    plan = replace(scale.QUICK if quick else scale.FULL, file=file)
    return [scale.run(plan, output, say)]
