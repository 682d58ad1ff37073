"""How fast GLNP's two solvers bring the objective down (figure 4 of the paper).

Both solvers take the same number of iterations from the same F on the same X. The objective is
Q(F)/‖X‖² = ‖X − FFᵀX‖²/‖X‖². Features with negative values are shifted (Algorithm S.1) for both.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._core.blocks import cut_rows
from biglp._engines import ThreadEngine
from biglp._rows import PreparedRows, Sample, as_source
from paper.pages import (
    Clock,
    Output,
    Part,
    figure,
    load_each,
    markdown_table,
    numbers,
    shared_legend,
)

ROWS_PER_BLOCK = 4096
SOLVERS = {"gradient": "accelerated gradient", "multiplicative": "multiplicative updates"}
STARTS = {"uniform": "from U[0, 1], the paper's start", "clusters": "from a clustering"}
COLOURS = {"gradient": "#0072b2", "multiplicative": "#d55e00"}
LINES: dict[str, Any] = {"uniform": "-", "clusters": (0, (4, 2))}
MARK = 20
"""Iterations after which the table looks at the objective, besides the end."""


@dataclass(frozen=True)
class Plan:
    """How much is run: iterations, and most rows of a data set."""

    iterations: int = 200
    most_rows: int = 20_000
    data: tuple[tuple[str, int], ...] = tuple(
        (entry["data"], entry["k"]) for entry in numbers()["convergence"]
    )


FULL = Plan()
QUICK = Plan(iterations=80, most_rows=3_000)


@dataclass(frozen=True)
class Curve:
    """One fit: the objective at the start and after each iteration, and when that was."""

    solver: str
    start: str
    objective: list[float]
    seconds: list[float]
    sweeps: int


def run(plan: Plan, output: Output, say: Callable[[str], None]) -> Part:
    """Fit, write the curves and draw them."""
    clock = Clock()
    results: dict[str, list[Curve]] = {}
    ks, rows, table = dict(plan.data), [], []
    missing: list[str] = []
    for name, data in load_each(ks, missing, say):
        X = data.X[np.random.default_rng(0).permutation(len(data.X))[: plan.most_rows]]
        k = min(ks[name], len(X))
        title = f"{data.stand_in.title} for {name}, k = {k}"
        curves = [
            fit(X, solver, start, k, plan.iterations) for start in STARTS for solver in SOLVERS
        ]
        results[title] = curves
        for curve in curves:
            rows += _rows(name, data.stand_in.title, k, curve)
            table.append(_line(f"{title} ({len(X):,} × {X.shape[1]})", curve))
        say(f"  {title} done")
    output.csv("convergence", rows)
    if results:
        draw(results, output)
    part = Part("convergence", "Figure 4: convergence of the two GLNP solvers", "", missing)
    part.verdicts = _verdicts(results)
    head = ["data", "solver", "start", "at start", f"after {MARK}", "at the end"]
    head += ["iterations", "sweeps", "seconds", "the paper"]
    part.body = "Nothing could be fitted: all data is missing."
    if results:
        part.body = "\n\n".join(
            [
                "Q(F)/‖X‖² = ‖X − FFᵀX‖²/‖X‖², lower is better, from the same F for both solvers. "
                f"At most {plan.most_rows:,} rows. Features with negative values are shifted for "
                "both. The paper draws its curves and "
                "prints no number; it says that the accelerated gradient ends lower in all three.",
                markdown_table(head, table),
                output.link("convergence", "Objective against iterations and seconds"),
            ]
        )
    part.facts = clock.facts()
    return part


def fit(X: np.ndarray, solver: str, start: str, k: int, iterations: int) -> Curve:
    """Take all iterations, whatever the objective does."""
    from biglp._core.errors import StoppedShortWarning
    from biglp._graph import TrainingRows
    from biglp._graph.glnp.factor import GlnpFactor

    source = PreparedRows(as_source(X), X.dtype)
    engine = CountingEngine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedShortWarning)
        blocks = cut_rows(source, ROWS_PER_BLOCK)
        rows = TrainingRows(engine, source, blocks, Sample.of_prepared(source, seed=0))
        factor = GlnpFactor.learn(rows, k, solver=solver, start=start, max_iter=iterations, tol=0.0)
    engine.close()
    # Sweeps that had to be redone belong to the iteration that they ended.
    steps = len(factor.objective_)
    times = np.interp(np.arange(steps), np.linspace(0, steps - 1, len(engine.times)), engine.times)
    return Curve(solver, start, factor.objective_, times.tolist(), engine.sweeps)


class CountingEngine(ThreadEngine):
    """Threads, with the iterations' sweeps counted and timed."""

    def __init__(self) -> None:
        super().__init__()
        self.sweeps, self.times = 0, [0.0]

    def sum_blocks(self, func: Any, blocks: Any, label: str = "sum") -> tuple[Any, ...]:
        """Add up, and count the sweep when it is a step of GLNP."""
        began = time.perf_counter()
        total = super().sum_blocks(func, blocks, label)
        if label.startswith("GLNP") and label != "GLNP start":
            self.sweeps += 1
            self.times.append(self.times[-1] + time.perf_counter() - began)
        return total


def _rows(name: str, title: str, k: int, curve: Curve) -> list[dict[str, Any]]:
    return [
        {
            "paper_data": name,
            "data": title,
            "k": k,
            "solver": curve.solver,
            "start": curve.start,
            "iteration": step,
            "seconds": round(seconds, 4),
            "objective": float(f"{value:.6g}"),
        }
        for step, (value, seconds) in enumerate(zip(curve.objective, curve.seconds, strict=True))
    ]


def _line(title: str, curve: Curve) -> list[str]:
    marks = [curve.objective[i] for i in (0, min(MARK, len(curve.objective) - 1), -1)]
    return [
        title,
        SOLVERS[curve.solver],
        STARTS[curve.start],
        *(f"{value:.4f}" for value in marks),
        str(len(curve.objective) - 1),
        str(curve.sweeps),
        f"{curve.seconds[-1]:.2f}",
        "no number printed",
    ]


def _verdicts(results: dict[str, list[Curve]]) -> list[tuple[bool | None, str]]:
    what = "accelerated gradient ends lower than multiplicative updates, from the paper's start"
    if not results:
        return [(None, f"{what}: all data is missing")]
    lower, found = [], []
    for title, curves in results.items():
        ends = {c.solver: c.objective[-1] for c in curves if c.start == "uniform"}
        lower.append(ends["gradient"] < ends["multiplicative"])
        found.append(f"{title}: {ends['gradient']:.4f} against {ends['multiplicative']:.4f}")
    return [(all(lower), f"{what}, on {sum(lower)} of {len(lower)} data sets ({'; '.join(found)})")]


def draw(results: dict[str, list[Curve]], output: Output) -> None:
    """Draw two panels a data set: against iterations and against seconds."""
    with figure(output.image("convergence"), len(results), 2, (3.4, 2.6)) as (drawn, axes):
        for column, (name, curves) in enumerate(results.items()):
            for axis, by_time in ((axes[column], False), (axes[len(results) + column], True)):
                for curve in curves:
                    places = curve.seconds if by_time else range(len(curve.objective))
                    axis.plot(
                        places,
                        curve.objective,
                        color=COLOURS[curve.solver],
                        linestyle=LINES[curve.start],
                        linewidth=1.6,
                        label=f"{SOLVERS[curve.solver]}, {STARTS[curve.start]}",
                    )
                axis.set_xlabel("seconds" if by_time else "iteration")
                axis.set_ylim(bottom=0)
                axis.grid(axis="y", color="#dddddd", linewidth=0.7)
            axes[column].set_title(name, fontsize=9)
        for first in (axes[0], axes[len(results)]):
            first.set_ylabel("‖X − FFᵀX‖² / ‖X‖²")
        shared_legend(drawn, axes[0], 2)
