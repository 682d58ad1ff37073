"""From what the methods took to the page ``peers.md``: verdict, table, CSV and plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from biglp._core.memory import format_bytes
from biglp._experiments.peer_runs import LABELS_EACH, Limits, Outcome
from biglp._experiments.plots import figure, styles
from biglp._experiments.report import Output, markdown_table

OURS, REFERENCE, REFERENCE_ROWS, TIMES_FASTER = "biglp", "LabelSpreading knn", 20_000, 20


def verdict(outcomes: Sequence[Outcome]) -> tuple[bool | None, str]:
    """Whether biglp is as much faster as it is meant to be, at equal or better accuracy."""
    by_name = {o.method: o for o in outcomes if o.n_rows == REFERENCE_ROWS}
    ours, other = by_name.get(OURS), by_name.get(REFERENCE)
    what = f"at {REFERENCE_ROWS:,} rows biglp is {TIMES_FASTER} times faster than {REFERENCE}"
    if ours is None or other is None or ours.work is None or other.work is None:
        return None, f"{what}: not both were run at that number of rows"
    assert ours.accuracy is not None
    assert other.accuracy is not None
    ratio = other.work / ours.work
    shown = ratio >= TIMES_FASTER and ours.accuracy >= other.accuracy
    return shown, (
        f"{what} at equal or better accuracy: {ratio:.1f} times ({ours.work:.2f} s against "
        f"{other.work:.1f} s), accuracy {ours.accuracy:.1%} against {other.accuracy:.1%}"
    )


def page(outcomes: Sequence[Outcome], limits: Limits, output: Output, facts: dict[str, Any]) -> str:
    """Write the table and the plot as Markdown."""
    sizes = sorted({o.n_rows for o in outcomes})
    data = {o.n_rows: o.data for o in outcomes}
    by_key = {(o.method, o.n_rows): o for o in outcomes}
    head = ["method", *(f"{n:,} rows" for n in sizes)]
    rows = [[name, *(cell(by_key[name, n]) for n in sizes)] for name in _methods(outcomes)]
    shown, what = verdict(outcomes)
    words = {True: "Shown", False: "**Not shown**", None: "Cannot be said"}[shown]
    what_rows = "; ".join(f"{n:,} rows: {data[n]}" for n in sizes)
    return (
        "\n\n".join(
            [
                "## Peers",
                f"{words}: {what}.",
                f"The same rows and {LABELS_EACH} labels a class through each method "
                f"({what_rows}). A cell has seconds, peak private memory, and accuracy on the "
                "rows without a label. Seconds are those on the clock or, where other programs "
                "kept the processors busy, those of the processor, the lesser. Each method runs in "
                "a process of its own, on default settings but for `LabelSpreading(max_iter=200)` "
                "and widths of Gaussian kernels that fit the rows. Time is without imports, after "
                "one run on a few rows, the best of three where they are short; it includes the "
                "graph. Limits: "
                f"{limits.seconds:g} s, imports included, and {format_bytes(limits.memory)}; a "
                "method that passes one is not run on more rows.",
                markdown_table(head, rows),
                *_stages(outcomes),
                output.link("peers", "Seconds against rows, all methods"),
                f"<sub>{facts['date']}, {facts['hardware']}, {facts['versions']}. "
                f"`{facts['command']}`, {facts['seconds']:.0f} s on the clock.</sub>",
            ]
        )
        + "\n"
    )


def _stages(outcomes: Sequence[Outcome]) -> list[str]:
    """What the stages of LP-LOKA took, where it was run."""
    staged = [outcome for outcome in outcomes if outcome.stages]
    if not staged:
        return []
    names = list(staged[0].stages)
    table = [
        [f"{one.n_rows:,}", *(f"{one.stages[name]:.3g} s" for name in names)] for one in staged
    ]
    return [
        "LP-LOKA's stages, seconds on the clock: similarities to the landmarks (ours, NumPy), then "
        "its two programs as a whole, which read and write text, and what they say of their "
        "computation alone. Files that we write for them are not counted.",
        markdown_table(["rows", *names], table),
    ]


def _methods(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.method for outcome in outcomes))


def cell(outcome: Outcome) -> str:
    """What a method took in a few words, or why it has no answer."""
    if outcome.work is None or outcome.accuracy is None:
        return outcome.why
    used = f"{outcome.peak / 2**20:,.0f} MiB"
    return f"{outcome.work:.3g} s, {used}, {outcome.accuracy:.1%}"


def csv_row(outcome: Outcome) -> dict[str, Any]:
    """One line of the CSV file."""
    why = outcome.why
    return {
        "method": outcome.method,
        "rows": outcome.n_rows,
        "data": outcome.data,
        "seconds": why or round(outcome.work or 0.0, 4),
        "clock_seconds": why or round(outcome.seconds or 0.0, 4),
        "cpu_seconds": why or round(outcome.cpu or 0.0, 4),
        "peak_mib": round(outcome.peak / 2**20, 1),
        "accuracy": why or round(outcome.accuracy or 0.0, 5),
        "stopped": why or "no",
    }


def draw(outcomes: Sequence[Outcome], limits: Limits, output: Output) -> None:
    """Draw seconds against rows, one line a method."""
    with figure(output.image("peers"), 1, size=(7.2, 4.4)) as (_, (axis,)):
        for name, style in zip(_methods(outcomes), styles(), strict=False):
            mine = [o for o in outcomes if o.method == name]
            ran = [o for o in mine if o.work is not None]
            ended = next((o for o in mine if o.why and not o.why.startswith("not run")), None)
            label = name if ended is None else f"{name} (stops: {ended.why} at {ended.n_rows:,})"
            axis.plot([o.n_rows for o in ran], [o.work for o in ran], label=label, **style)
            if ended is not None and ran:
                axis.plot(
                    [ran[-1].n_rows, ended.n_rows],
                    [ran[-1].work, limits.seconds],
                    color=style["color"],
                    linestyle=":",
                    linewidth=1,
                )
                axis.plot(ended.n_rows, limits.seconds, "x", color=style["color"], markersize=8)
        real = [o.n_rows for o in outcomes if o.data == "MNIST"]
        made = [o.n_rows for o in outcomes if o.data != "MNIST"]
        if real and made:
            border = float(np.sqrt(max(real) * min(made)))
            axis.axvline(border, color="#bbbbbb", linestyle="--", linewidth=0.8)
            place = axis.get_xaxis_transform()
            axis.text(border, 0.02, " simulated →", fontsize=7, transform=place)
        axis.axhline(limits.seconds, color="#bbbbbb", linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
