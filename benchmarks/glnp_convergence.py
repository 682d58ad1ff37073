"""How fast GLNP's two solvers bring the objective down: ``biglp reproduce convergence``, by hand.

    BIGLP_DATA=folder python benchmarks/glnp_convergence.py [--iterations 100] [--out folder]

Needs matplotlib (``pip install "biglp[plot]"``).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from biglp._experiments import convergence
from biglp._experiments.report import Output


def main() -> None:
    """Fit, write the curves and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=convergence.FULL.iterations)
    parser.add_argument("--rows", type=int, default=convergence.FULL.most_rows, help="at most")
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    options = parser.parse_args()
    plan = replace(convergence.FULL, iterations=options.iterations, most_rows=options.rows)
    output = Output(options.out)
    part = convergence.run(plan, output, print)
    output.keep(part)
    print(part.body)


if __name__ == "__main__":
    main()
