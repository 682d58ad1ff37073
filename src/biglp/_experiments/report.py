"""What an experiment writes: CSV files, plots, and its part of the page ``paper.md``.

Each experiment writes ``results/NAME.json`` with its part of the page. The page is put together
from the parts that are in the folder, so that one experiment can be run again alone; a part that is
not there is named with the command that makes it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from biglp._core.files import atomic_write
from biglp._core.measure import versions

ORDER = ("tables", "classification", "runtime", "memory", "convergence", "scale")
"""Parts of the page. "classification" is made by the experiment "tables"."""
PAGE = "paper.md"
RESULTS, IMAGES = "results", "img"
EMPTY = {"", "nan", "None", "–", "-"}


@dataclass
class Part:
    """One experiment's part of the page.

    Attributes
    ----------
    name, title : str
    body : str
        Markdown below the title.
    missing : list of str
        What could not be run, and how to get it.
    verdicts : list of (bool or None, str)
        What the experiment was to show, and whether it did; None where it cannot be said.
    facts : dict
        Date, hardware, versions, command, seconds.
    """

    name: str
    title: str
    body: str
    missing: list[str] = field(default_factory=list)
    verdicts: list[tuple[bool | None, str]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """The folder that an experiment writes to."""

    folder: Path

    def csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write a CSV file whose columns are the keys of the first row."""
        path = self._place(RESULTS) / f"{name}.csv"
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["empty"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        with atomic_write(path) as file:
            file.write(text.getvalue().encode())
        return path

    def image(self, name: str) -> Path:
        """Path of an image without its ending."""
        return self._place(IMAGES) / name

    def link(self, name: str, words: str) -> str:
        """Markdown that shows an image."""
        return f"![{words}]({IMAGES}/{name}.png)"

    def keep(self, part: Part) -> None:
        """Store a part and put the page together again."""
        with atomic_write(self._place(RESULTS) / f"{part.name}.json") as file:
            file.write(json.dumps(asdict(part), indent=1, ensure_ascii=False).encode())
        with atomic_write(self.folder / PAGE) as file:
            file.write(self._page().encode())

    def _place(self, name: str) -> Path:
        place = self.folder / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def _page(self) -> str:
        text = [
            "# The paper's experiments, beside ours",
            "",
            "Made by `biglp reproduce`; run it again to renew this page. Every number of the paper "
            "is from its tables or its text; curves that it only draws are not guessed.",
        ]
        for name in ORDER:
            path = self.folder / RESULTS / f"{name}.json"
            if path.exists():
                text += ["", *_as_markdown(Part(**json.loads(path.read_text(encoding="utf-8"))))]
            else:
                experiment = "tables" if name == "classification" else name
                text += ["", f"## {name.capitalize()}", ""]
                text += [f"Not run here. Run `biglp reproduce {experiment}`."]
        return "\n".join(text) + "\n"


def _as_markdown(part: Part) -> list[str]:
    text = [f"## {part.title}", ""]
    if part.verdicts:
        words = {True: "Shown", False: "**Not shown**", None: "Cannot be said"}
        text += [f"- {words[shown]}: {what}" for shown, what in part.verdicts] + [""]
    text += [part.body.strip(), ""]
    if part.missing:
        text += [
            "Not run, because data is missing:",
            "",
            *[f"- {what}" for what in part.missing],
            "",
        ]
    facts = part.facts
    return [
        *text,
        f"<sub>{facts['date']}, {facts['hardware']}, {facts['versions']}. "
        f"`{facts['command']}`, {facts['seconds']:.0f} s on the clock, "
        f"{facts['cpu_seconds']:.0f} s of processor time.</sub>",
    ]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Draw a table; an empty cell is a mistake, since every gap is to be explained.

    Raises
    ------
    ValueError
        Naming the column with the empty cell.
    """
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        for name, cell in zip(head, row, strict=True):
            if str(cell).strip() in EMPTY:
                raise ValueError(f"column {name!r} has an empty cell; say why there is no number")
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)


class Clock:
    """Time on the clock and of the processor, for this process and those it started."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), _processor_seconds()

    def facts(self) -> dict[str, Any]:
        """Date, hardware, versions, command and seconds since the start."""
        return {
            "date": time.strftime("%Y-%m-%d"),
            "hardware": hardware(),
            "versions": ", ".join(
                f"{name} {number}" for name, number in versions().items() if name != "system"
            ),
            "command": command(),
            "seconds": time.perf_counter() - self._began,
            "cpu_seconds": _processor_seconds() - self._cpu,
        }


def hardware() -> str:
    """What this machine is."""
    model = "processor of unknown model"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
        model = names[0] if names else model
    except OSError:  # not Linux
        pass
    memory = f"{psutil.virtual_memory().total / 2**30:.0f} GiB"
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores ({model}), {memory} of memory{load}"


def command() -> str:
    """Return the command that was typed, without the folder of the program."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return " ".join(shlex.quote(word) for word in words)


def _processor_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
