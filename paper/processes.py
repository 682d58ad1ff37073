"""Run time and memory by number of processes (figures 2 and 3 of the paper)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from biglp._core.errors import MissingExtraError
from paper import ranks
from paper.pages import Clock, Output, Part, figure, markdown_table, numbers, styles
from paper.ranks import PAPER_NAMES, RankPlan

NAMES = {
    "random": "Nyström (random)",
    "kmeans-full": "Nyström (k-means over all rows)",
    "glnp": "GLNP, 30 iterations",
    "anchors": "anchors",
}
MIB = 2**20


def run_time(plan: RankPlan, output: Output, say: Callable[[str], None]) -> Part:
    """Seconds by number of processes."""
    clock = Clock()
    part = Part("runtime", "Figure 2: run time by number of processes", "")
    try:
        found = ranks.measure(plan, say)
    except MissingExtraError as error:
        return _not_run(part, error, clock, say)
    alone = {run["method"]: run for run in found if run["ranks"] == min(plan.ranks)}
    rows = [
        {
            "method": run["method"],
            "rows": run["rows"],
            "ranks": run["ranks"],
            "seconds": round(run["seconds"], 3),
            "cpu_seconds_of_busiest_rank": round(run["cpu"], 3),
            "times_faster": round(alone[run["method"]]["seconds"] / run["seconds"], 3),
            "times_less_cpu": round(alone[run["method"]]["cpu"] / run["cpu"], 3),
            "other_programs_cores": round(run["others"], 2),
        }
        for run in found
    ]
    output.csv("runtime", rows)
    _draw_times(rows, plan, output)
    head = ["method", "rows × 100", "ranks", "seconds", "times faster", "CPU s, busiest rank"]
    head += ["by CPU s", "cores that others used", "the paper, times faster"]
    head += ["share of the ideal: ours, the paper's, difference"]
    table = [
        [
            NAMES[row["method"]],
            row["rows"],
            f"{row['ranks']}{_crowded(row['ranks'])}",
            f"{row['seconds']:.2f}",
            f"{row['times_faster']:.2f}",
            f"{row['cpu_seconds_of_busiest_rank']:.2f}",
            f"{row['times_less_cpu']:.2f}",
            f"{row['other_programs_cores']:.1f}",
            _paper_speedup(row["method"]),
            _efficiency(row["method"], row["times_faster"] / row["ranks"]),
        ]
        for row in rows
    ]
    part.body = "\n\n".join(
        [
            "`mpiexec` ranks of one thread each on simulated rows of 100 features, k = 20, best of "
            f"{plan.repeat} runs. A rank more than there are cores takes turns with another "
            '("oversubscribed") and cannot be faster. Where other programs are busy, CPU seconds '
            "say more than those on the clock. The paper gives these ratios in words and only "
            "draws its seconds; it ran GLNP in threads on one machine.",
            markdown_table(head, table),
            output.link("runtime", "Seconds by number of processes"),
        ]
    )
    part.facts = clock.facts()
    return part


def memory(plan: RankPlan, output: Output, say: Callable[[str], None]) -> Part:
    """Memory by number of processes."""
    clock = Clock()
    part = Part("memory", "Figure 3: memory by number of processes", "")
    try:
        found = ranks.measure(plan, say)
    except MissingExtraError as error:
        return _not_run(part, error, clock, say)
    rows = [
        {
            "method": run["method"],
            "rows": run["rows"],
            "ranks": run["ranks"],
            "largest_private_mib": round(max(run["peaks"]) / MIB, 1),
            "all_private_mib": round(sum(run["peaks"]) / MIB, 1),
            "largest_resident_mib": round(max(run["largest_rss"]) / MIB, 1),
            "all_resident_mib": round(sum(run["largest_rss"]) / MIB, 1),
        }
        for run in found
    ]
    output.csv("memory", rows)
    _draw_memory(rows, plan, output)
    big = next(entry for entry in numbers()["scale"] if "gb_per_process" in entry)
    head = ["method", "rows × 100", "ranks", "MiB a rank, private", "all ranks"]
    head += ["MiB a rank, resident", "all ranks, resident"]
    table = [
        [
            NAMES[row["method"]],
            row["rows"],
            f"{row['ranks']}{_crowded(row['ranks'])}",
            *(f"{row[name]:,.0f}" for name in list(row)[3:]),
        ]
        for row in rows
    ]
    part.body = "\n\n".join(
        [
            "The same jobs. Private memory is what belongs to a process alone; resident memory "
            "also counts shared libraries and pages of the file that the system can drop. The one "
            f"number that the paper gives is {big['gb_per_process']} GB for each of "
            f"{big['processes']} processes on {big['rows']:,} × {big['features']} (see the scale "
            "part); the curves of its figure are not tabulated, so no difference can be given.",
            markdown_table(head, table),
            output.link("memory", "Memory by number of processes"),
        ]
    )
    part.facts = clock.facts()
    return part


def _not_run(part: Part, error: Exception, clock: Clock, say: Callable[[str], None]) -> Part:
    say(f"{part.name} is left out: {error}")
    part.body = f"Not run: {error}"
    part.facts = clock.facts()
    return part


def _crowded(count: int) -> str:
    return ", oversubscribed" if count > (os.cpu_count() or 1) else ""


def _paper_speedup(method: str) -> str:
    found = [
        f"{entry['ratio']} on {entry['workers']} ({entry['data']})"
        for entry in numbers()["speedups"]
        if entry["method"] == PAPER_NAMES.get(method)
    ]
    return ", ".join(found) or "not in the paper"


def _efficiency(method: str, ours: float) -> str:
    """Share of the ideal ratio, the only figure that different numbers of processes share."""
    paper = [
        entry["ratio"] / entry["workers"]
        for entry in numbers()["speedups"]
        if entry["method"] == PAPER_NAMES.get(method)
    ]
    if not paper:
        return f"{ours:.0%}, not in the paper"
    mean = sum(paper) / len(paper)
    return f"{ours:.0%}, {mean:.0%}, {100 * (ours - mean):+.0f} points"


def _draw_times(rows: list[dict[str, Any]], plan: RankPlan, output: Output) -> None:
    with figure(output.image("runtime"), 2) as (_, (seconds, ratio)):
        for method, style in zip(plan.methods, styles(), strict=False):
            mine = [row for row in rows if row["method"] == method]
            counts = [row["ranks"] for row in mine]
            name = f"{NAMES[method]}, {mine[0]['rows']}"
            seconds.plot(counts, [row["seconds"] for row in mine], label=name, **style)
            ratio.plot(counts, [row["times_faster"] for row in mine], **style)
        ratio.plot(plan.ranks, plan.ranks, color="#999999", linestyle=":", label="ideal")
        for axis, words in ((seconds, "seconds"), (ratio, "times faster than 1 process")):
            axis.set(xlabel="processes", ylabel=words, xticks=plan.ranks)
            axis.axvspan(os.cpu_count() or 1, max(plan.ranks) + 0.2, color="#eeeeee", zorder=0)
        seconds.set_ylim(bottom=0)
        seconds.legend(fontsize=7)
        ratio.legend(fontsize=7)


def _draw_memory(rows: list[dict[str, Any]], plan: RankPlan, output: Output) -> None:
    with figure(output.image("memory"), 2) as (_, (each, total)):
        for method, style in zip(plan.methods, styles(), strict=False):
            mine = [row for row in rows if row["method"] == method]
            counts = [row["ranks"] for row in mine]
            name = f"{NAMES[method]}, {mine[0]['rows']}"
            each.plot(counts, [row["largest_private_mib"] for row in mine], label=name, **style)
            total.plot(counts, [row["all_private_mib"] for row in mine], **style)
        for axis, words in ((each, "MiB, largest rank"), (total, "MiB, all ranks")):
            axis.set(xlabel="processes", ylabel=words, xticks=plan.ranks)
            axis.set_ylim(bottom=0)
        each.legend(fontsize=7)
