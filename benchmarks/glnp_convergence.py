"""How fast GLNP's two solvers bring the objective down; draws docs/img/glnp_convergence.

    python benchmarks/glnp_convergence.py

Both solvers take the same number of iterations from the same F, on scikit-learn's digits and, when
BIGLP_DATA names a folder with mnist.npz (arrays X and y), on MNIST 7 v 9. Needs matplotlib
(``pip install "biglp[plot]"``).
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from biglp._blocks import cut_rows
from biglp._engines import ThreadEngine
from biglp._errors import StoppedShortWarning
from biglp._lowrank.glnp import GlnpFactor
from biglp._sources import PreparedSource, as_source

ROWS_PER_BLOCK = 4096
SOLVERS = {"gradient": "accelerated gradient", "multiplicative": "multiplicative updates"}
STARTS = {"clusters": "from a clustering", "uniform": "from U[0, 1], the paper's start"}
COLOURS = {"gradient": "#0072b2", "multiplicative": "#d55e00"}
LINES = {"clusters": "-", "uniform": (0, (4, 2))}


class Curve(NamedTuple):
    """One fit."""

    solver: str
    start: str
    objective: list[float]
    sweeps: int
    seconds: float  # an iteration


def main() -> None:
    """Fit, print a table and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, default=20, help="columns of F (default: 20)")
    parser.add_argument("--iterations", type=int, default=100, help="(default: 100)")
    parser.add_argument("--out", type=Path, default=Path("docs/img/glnp_convergence"))
    options = parser.parse_args()
    results = {}
    for name, X in data_sets().items():
        results[name] = [
            fit(X, solver, start, options.k, options.iterations)
            for start in STARTS
            for solver in SOLVERS
        ]
        report(name, X, results[name])
    draw(results, options.k, options.out)
    print(f"drew {options.out}.png and {options.out}.svg")


def data_sets() -> dict[str, np.ndarray]:
    """Digits, and MNIST 7 v 9 where it can be found."""
    found = {"digits": load_digits().data.astype(np.float32)}
    folder = os.environ.get("BIGLP_DATA")
    path = Path(folder or ".") / "mnist.npz"
    if folder and path.exists():
        with np.load(path) as data:
            found["MNIST 7 v 9"] = data["X"][np.isin(data["y"], (7, 9))].astype(np.float32) / 255
    else:
        why = f"there is no {path}" if folder else "BIGLP_DATA is not set"
        print(
            f"MNIST 7 v 9 is left out: {why}; set BIGLP_DATA to a folder with mnist.npz "
            "(arrays X of shape (70000, 784) and y of shape (70000,))."
        )
    return found


def fit(X: np.ndarray, solver: str, start: str, k: int, iterations: int) -> Curve:
    """Take all iterations, whatever the objective does."""
    source = PreparedSource(as_source(X), X.dtype)
    engine = CountingEngine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedShortWarning)
        factor = GlnpFactor.fit(
            engine,
            cut_rows(source, ROWS_PER_BLOCK),
            source,
            k=k,
            solver=solver,
            start=start,
            max_iter=iterations,
            tol=0.0,
        )
    seconds = engine.seconds / max(factor.n_iter_, 1)
    return Curve(solver, start, factor.objective_, engine.sweeps, seconds)


class CountingEngine(ThreadEngine):
    """Threads, with the iterations' sweeps counted and timed."""

    def __init__(self) -> None:
        super().__init__()
        self.sweeps, self.seconds = 0, 0.0

    def sum_blocks(self, func: Any, blocks: Any, label: str = "sum") -> tuple[Any, ...]:
        """Add up, and count the sweep when it is a step of GLNP."""
        began = time.perf_counter()
        total = super().sum_blocks(func, blocks, label)
        if label.startswith("GLNP") and label != "GLNP start":
            self.sweeps += 1
            self.seconds += time.perf_counter() - began
        return total


def report(name: str, X: np.ndarray, curves: list[Curve]) -> None:
    """Print what was reached and what it took."""
    print(f"\n{name}: {X.shape[0]:,} rows × {X.shape[1]:,} features, {X.dtype}")
    print(f"{'solver':24}{'start':10}{'Q at start':>11}{'at 20':>9}{'at end':>9}", end="")
    print(f"{'iterations':>12}{'sweeps':>8}{'ms/iteration':>14}")
    for curve in curves:
        marks = [curve.objective[i] for i in (0, min(20, len(curve.objective) - 1), -1)]
        print(f"{SOLVERS[curve.solver]:24}{curve.start:10}", end="")
        print(f"{marks[0]:11.4f}{marks[1]:9.4f}{marks[2]:9.4f}", end="")
        print(f"{len(curve.objective) - 1:12}{curve.sweeps:8}{1000 * curve.seconds:14.1f}")


def draw(results: dict[str, list[Curve]], k: int, out: Path) -> None:
    """Draw one panel a data set."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "glnp", "font.size": 10, "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False})
    figure, axes = plt.subplots(
        1, len(results), figsize=(4.6 * len(results) + 0.4, 3.9), squeeze=False
    )
    for axis, (name, curves) in zip(axes[0], results.items(), strict=True):
        for curve in curves:
            axis.plot(
                curve.objective,
                color=COLOURS[curve.solver],
                linestyle=LINES[curve.start],
                linewidth=2 if curve.start == "clusters" else 1.4,
                label=f"{SOLVERS[curve.solver]}, {STARTS[curve.start]}",
            )
        axis.set_title(f"{name}, k = {k}", loc="left", fontsize=11)
        axis.set_xlabel("iteration")
        axis.set_xlim(0, max(len(curve.objective) for curve in curves) - 1)
        axis.set_ylim(bottom=0)
        axis.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes[0, 0].set_ylabel("‖X − FFᵀX‖² / ‖X‖²")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    columns = 2 if len(results) > 1 else 1
    figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False)
    figure.tight_layout(rect=(0, 0.14 if columns == 2 else 0.26, 1, 1))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out.with_suffix(".png"), dpi=160)
    figure.savefig(out.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
