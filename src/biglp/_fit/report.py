"""What a fit has to say about itself: a mapping for programs, a few lines for people.

docs/python.md describes every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

HELPED = {
    True: "the unlabelled rows helped",
    False: "the unlabelled rows did not help",
    None: "no clear difference",
}
"""What is said of the report's ``unlabelled_rows_helped``."""


class Report(dict[str, Any]):
    """A dict of JSON values that prints as a few lines, and in a notebook as HTML."""

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{escape(line)}</p>" for line in self.lines())
        keys = "".join(
            f"<tr><th>{escape(str(key))}</th><td>{escape(_shortened(value))}</td></tr>"
            for key, value in self.items()
        )
        return (
            f'<div class="biglp-report">{told}<details><summary>All {len(self)} keys</summary>'
            f"<table>{keys}</table></details></div>"
        )

    def lines(self) -> list[str]:
        """What people want to know first."""
        counts = [(self.get("rows"), "rows"), (self.get("labelled_rows"), "labels")]
        size = ", ".join(f"{count:,} {what}" for count, what in counts if count is not None)
        found = [f"{size}: {about_method(self)}" if size else about_method(self)]
        found += about_evidence(self)
        notes = {
            "rows tied to no label": self.get("unreached_rows"),
            "rows of degree zero or less": self.get("repaired_rows"),
            "labels that are probably wrong": self.get("probably_wrong_labels"),
            "columns left out": len(self.get("left_out_columns") or ()),
        }
        found += [f"{what}: {count:,}" for what, count in notes.items() if count]
        if self.get("text_columns"):
            found.append(f"words counted in: {', '.join(self['text_columns'])}")
        if self.get("unlike_labels"):
            found.append(f"rows unlike all labels: {self['unlike_labels']['share']:.1%}")
        return found


def about_method(report: Mapping[str, Any], given: Mapping[str, int] | None = None) -> str:
    """One line on what was chosen, and on the labels that it finds beside the simplest answer.

    ``given``: labels of each class.
    """
    parts = [str(report["factor"])] if "factor" in report else []
    if "landmarks" in report:
        parts.append(f"{report['landmarks']:,} landmarks")
    if "bandwidth" in report:
        parts.append(f"bandwidth {report['bandwidth']:.3g}")
    if report.get("alpha") is not None:
        parts.append(f"alpha {report['alpha']:g}")
    if "scaling" in report:
        # What was done to the features, and which kinds of them were recognised.
        words, columns = f"scaling {report['scaling']}", report.get("columns")
        if columns:
            two, groups = columns["two_valued"], columns["groups"]
            kinds = {
                "number" if columns["numbers"] == 1 else "numbers": columns["numbers"],
                "with long tails": columns["long_tails"],
                "of 0/1" + (f" in {groups:,} groups" if groups < two else ""): two,
                "constant": columns["constant"],
            }
            counted = ", ".join(f"{count:,} {what}" for what, count in kinds.items() if count)
            words += f" ({counted})"
        if "directions" in report:
            words += f", {report['directions']:,} directions"
        parts.append(words)
    if report.get("leave_one_out_accuracy") is not None:
        right = f"{report['leave_one_out_accuracy']:.1%} of held-out labels found"
        if given:
            largest = max(given, key=lambda name: given[name])
            share = given[largest] / sum(given.values())
            right += f" (always saying {largest} finds {share:.1%})"
        parts.append(right)
    return ", ".join(parts)


def about_evidence(report: Mapping[str, Any]) -> list[str]:
    """Lines on how many rows are right, and on the members of the committee."""
    if "held_out_error" in report:
        errors = ", ".join(f"{error:.3g}" for error in report["held_out_error"])
        return [f"error on {report['held_out_labels']:,} held-out labels: {errors}"]
    if "members" not in report:
        return []
    members = report["members"]
    total = sum(item["weight"] for item in members) or 1.0
    shares = {"graph": sum(item["weight"] for item in members if item["graph"])}
    shares |= {item["member"]: item["weight"] for item in members if not item["graph"]}
    weighed = ", ".join(f"{name} {weight / total:.0%}" for name, weight in shares.items())
    lines, estimate = [], report.get("estimated_accuracy")
    if estimate is not None:  # how many rows are right, beside the simplest answer there is
        low, high = (round(100 * share) for share in estimate["interval"])
        following = estimate["next_labels"]
        gains = (following["gain"], *following["range"])
        likely, least, most = (f"{round(100 * share, 1):g}" for share in gains)
        lines = [
            f"About {100 * estimate['accuracy']:.0f} % of the unlabelled rows are right (90 % "
            f"interval {low} to {high}); always saying {estimate['largest_class']} would be "
            f"{100 * estimate['base_rate']:.0f} %",
            f"{following['labels']} more labels would add about {likely} "
            f"{'point' if likely == '1' else 'points'} ({least} to {most})",
        ]
    if report["held_out_accuracy"] is None:
        return [*lines, f"weights: {weighed}; too few labels to hold some out"]
    found = f"{report['held_out_accuracy']:.1%} of {report['held_out_labels']:,} held-out labels"
    if report["supervised_accuracy"] is None:
        return [*lines, f"weights: {weighed}; {found} found"]
    alone = f"{report['supervised_accuracy']:.1%} without the graph"
    helped = HELPED[report["unlabelled_rows_helped"]]
    return [*lines, f"weights: {weighed}; {found} found ({alone}: {helped})"]


def _shortened(value: Any, most: int = 200) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]} …"
