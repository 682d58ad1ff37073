"""biglp beside what one would use instead: the same rows and labels, from 10³ to 10⁶ rows.

Each method runs in a process of its own, which is ended when it passes the time or the memory that
it may have. A method that was ended is not run on more rows, and the table says where and why.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from biglp._core.errors import ParameterError
from biglp._core.files import atomic_write
from biglp._experiments import lploka
from biglp._experiments.lploka import LpLoka
from biglp._experiments.peer_methods import METHODS
from biglp._experiments.peer_page import cell, csv_row, draw, page
from biglp._experiments.peer_runs import Limits, Outcome, run_one, write_problem
from biglp._experiments.plots import require_matplotlib
from biglp._experiments.report import Clock, Output

SIZES = (1_000, 5_000, 20_000, 70_000, 300_000, 1_000_000)
PAGE = "peers.md"


def run(
    sizes: Sequence[int],
    limits: Limits,
    output: Output,
    say: Callable[[str], None],
    lp_loka: LpLoka | None = None,
) -> list[Outcome]:
    """Measure all methods, write CSV, plot and page; LP-LOKA too, where its binaries are given."""
    if not sizes or min(sizes) < 100:
        raise ParameterError(f"sizes={list(sizes)} must be numbers of rows of 100 or more.")
    require_matplotlib()
    programs: dict[str, tuple[str, ...]] = {}
    if lp_loka is not None:
        lp_loka.check()
        programs = dict.fromkeys(lploka.METHODS, lp_loka.program())
    clock, outcomes = Clock(), []
    stopped: dict[str, str] = {}
    for n_rows in sorted(set(sizes)):
        with tempfile.TemporaryDirectory(prefix="biglp-peers-") as folder:
            problem = write_problem(Path(folder), n_rows)
            for method in (*METHODS, *programs):
                if method in stopped:
                    why = f"not run: {stopped[method]}"
                    outcome = Outcome(method, n_rows, problem.data, why=why)
                else:
                    own = {"program": programs[method]} if method in programs else {}
                    outcome = run_one(method, problem, limits, **own)
                if outcome.why and method not in stopped:
                    stopped[method] = f"{outcome.why} at {n_rows:,} rows"
                outcomes.append(outcome)
                say(f"  {n_rows:,} rows, {method}: {cell(outcome)}")
    output.csv("peers", [csv_row(outcome) for outcome in outcomes])
    draw(outcomes, limits, output)
    with atomic_write(output.folder / PAGE) as file:
        file.write(page(outcomes, limits, output, clock.facts()).encode())
    return outcomes
