"""Tables and plots of docs/accuracy.md from the results of benchmarks/accuracy.py.

In the folder of results: ``accuracy.csv`` and, where peers were measured on their own,
``accuracy_peers.csv``; ``accuracy_calibration.csv`` for the plot of probabilities; and where it is,
``accuracy_lodo.csv``, lines of biglp with constants that were chosen without the data set of the
line ("leave one data set out").

Run with:  python benchmarks/accuracy_page.py [--results docs/results] [--page docs/accuracy.md].
The part of the page between the two marks is replaced; the rest is kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import accuracy_plots as plots
import accuracy_tables as tables

MOST = 8
"""Cells that are shown of those where a peer is better."""
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"


def read(folder: Path, *names: str) -> pd.DataFrame | None:
    """Lines of the files that are there."""
    found = [pd.read_csv(folder / name) for name in names if (folder / name).exists()]
    return pd.concat(found, ignore_index=True) if found else None


def parts_of(
    results: pd.DataFrame, left_out: pd.DataFrame | None
) -> list[tuple[str, str, list[str]]]:
    """Title, explanation and lines of each part of the page."""
    classes, random = tables.part(results, "class"), tables.part(results, "random")
    lodo = [None if left_out is None else tables.part(left_out, how) for how in ("class", "random")]
    on_tables = tables.part(random, "random", tables.TABLES)
    texts = tables.part(classes, "class", tables.TEXTS)
    below = tables.losses(results)
    head = ["data", "rows", "labels", "biglp", "best peer", "behind by", "balanced, both"]
    total = len(results.groupby(tables.CELL, observed=True))
    return [
        (
            "Labels of each class",
            "Accuracy in percent, means over data sets and sizes.",
            [
                *tables.summary(classes, lodo[0]),
                "",
                "![Accuracy by labels a class](img/accuracy.png)",
                "",
                *tables.by_size(classes),
            ],
        ),
        (
            "Labels drawn at random",
            f"AUC in percent / log-loss on the tables with text columns "
            f"({' and '.join(tables.TABLES)}), means over sizes.",
            [
                *tables.at_random(on_tables, lodo[1]),
                "",
                "The same over all data sets.",
                "",
                *tables.at_random(random, lodo[1]),
                "",
                "![AUC by labels at random](img/accuracy_random.png)",
            ],
        ),
        ("Text", "Accuracy with all rows, by labels a class.", tables.text_table(texts)),
        (
            "Where biglp is behind",
            f"Below the best peer of the cell in accuracy by more than {tables.MARGIN:g} points "
            f"and one standard error: {len(below)} of {total} cells.",
            ["The largest of them:", "", *tables.markdown(head, below[:MOST])],
        ),
        (
            "Are the probabilities right?",
            "Calibration error (ten bins), mean over data sets, sizes and draws; r: at random.",
            [*tables.calibration_errors(results), "", "![Reliability](img/reliability.png)"],
        ),
        (
            "Is the estimate of accuracy right?",
            "What biglp says of its own accuracy on unlabelled rows, against the truth, in points.",
            tables.estimates(results),
        ),
    ]


def main() -> None:
    """Replace the measured part of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("docs/results"))
    parser.add_argument("--page", type=Path, default=Path("docs/accuracy.md"))
    options = parser.parse_args()
    found = read(options.results, "accuracy.csv", "accuracy_peers.csv")
    if found is None:
        raise SystemExit(
            f"{options.results} holds no accuracy.csv; run benchmarks/accuracy.py first."
        )
    results, left_out = tables.complete(found), read(options.results, "accuracy_lodo.csv")
    images = options.page.parent / "img"
    plots.curves(tables.cells(results, "accuracy"), "class", "accuracy, %", images / "accuracy")
    plots.curves(tables.cells(results, "auc"), "random", "AUC, %", images / "accuracy_random")
    calibration = read(options.results, "accuracy_calibration.csv")
    if calibration is not None:
        plots.reliability(calibration, images / "reliability")
    text = [BEGIN]
    for title, about, lines in parts_of(results, left_out):
        if lines:
            text += [f"## {title}", "", about, "", *lines, ""]
    page = options.page.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    options.page.write_text(before + "\n".join([*text, END]) + after)


if __name__ == "__main__":
    main()
