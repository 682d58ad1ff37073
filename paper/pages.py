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
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from biglp._core.errors import BadRowsError
from biglp._core.progress import versions
from biglp._files.local import atomic_write
from biglp.plot import displays as needs
from paper import datasets
from paper.datasets.registry import data_folder

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
            "Made by `python -m paper reproduce`; run it again to renew this page. Every number of "
            "the paper is from its tables or its text; curves that it only draws are not guessed.",
        ]
        for name in ORDER:
            path = self.folder / RESULTS / f"{name}.json"
            if path.exists():
                text += ["", *_as_markdown(Part(**json.loads(path.read_text(encoding="utf-8"))))]
            else:
                experiment = "tables" if name == "classification" else name
                text += ["", f"## {name.capitalize()}", ""]
                text += [f"Not run here. Run `python -m paper reproduce {experiment}`."]
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


# --------------------------------------------------------------------------------------------------
# Plots, as PNG and SVG. matplotlib is loaded here only, when something is drawn.


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE = {
    "svg.hashsalt": "biglp",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}


def require_matplotlib() -> None:
    """Explain early that plots need matplotlib, before hours of work.

    Raises
    ------
    MissingExtraError
    """
    needs.require_matplotlib("this command")


@contextmanager
def figure(path: Path, columns: int, rows: int = 1, size: tuple[float, float] = (3.4, 3.1)) -> Any:
    """Yield a figure and its axes in one list; save it as PNG and SVG afterwards.

    Parameters
    ----------
    path : Path
        File without its ending.
    columns, rows : int
        Panels.
    size : tuple of float
        Width and height of a panel in inches.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        # Not pyplot: it keeps figures alive and may look for a screen.
        drawn = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn, list(drawn.subplots(rows, columns, squeeze=False).ravel())
        drawn.savefig(path.with_suffix(".png"), dpi=100)
        drawn.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def styles() -> Iterator[dict[str, Any]]:
    """Endless line styles that can be told apart without colour."""
    while True:
        for colour, mark in zip(COLOURS, MARKS, strict=True):
            yield {"color": colour, "marker": mark, "markersize": 4, "linewidth": 1.5}


def shared_legend(drawn: Any, axis: Any, columns: int = 4) -> None:
    """One legend below all panels."""
    handles, names = axis.get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=columns)


# --------------------------------------------------------------------------------------------------
# The numbers that the paper reports, read from ``paper.toml``.


@dataclass(frozen=True)
class PaperTable:
    """Accuracies of one data set.

    Attributes
    ----------
    name, number : str
        Data set, and where the table stands.
    samples, features : int
    lp_kernel : {"linear", "rbf"}
        Kernel of the "LP" column.
    percent : tuple of float
        Labelled share of all samples, one a line.
    accuracy : tuple of dict of str to float
        Accuracy in percent by column, one a line.
    """

    name: str
    number: str
    samples: int
    features: int
    lp_kernel: str
    percent: tuple[float, ...]
    accuracy: tuple[dict[str, float], ...]

    @property
    def labels(self) -> tuple[int, ...]:
        """Labelled samples of each line.

        "0.001 %" is taken of all samples (16 of mnist8m's 1,648,890), as the paper words it; taken
        of the 80 % that are not test samples they would be a fifth fewer.
        """
        return tuple(int(share * self.samples / 100 + 1e-9) for share in self.percent)

    def best(self, line: int) -> tuple[str, float]:
        """Best column of a line, and its accuracy."""
        return max(self.accuracy[line].items(), key=lambda item: item[1])


@cache
def numbers() -> dict[str, Any]:
    """Everything in ``paper.toml``."""
    text = files("paper").joinpath("paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def tables() -> dict[str, PaperTable]:
    """Accuracy tables by data set."""
    found, columns = {}, numbers()["columns"]
    for entry in numbers()["tables"]:
        lines = tuple(dict(zip(columns, line, strict=True)) for line in entry["accuracy"])
        facts = {**entry, "percent": tuple(entry["percent"]), "accuracy": lines}
        found[entry["name"]] = PaperTable(**facts)
    return found


def column_name(column: str) -> str:
    """Name of a column for people."""
    method, _, k = column.partition(" ")
    words = {
        "glnp": "GLNP",
        "nystrom-random": "Nyström (random)",
        "nystrom-kmeans": "Nyström (k-means)",
        "knn": "5-NN",
        "lp": "LP",
    }
    return words[method] + (f", k = {k}" if k else "")


# --------------------------------------------------------------------------------------------------
# The data behind the experiments: the paper's five data sets, or stand-ins for them.
#
# A data set that ``python -m paper datasets fetch`` has brought is used itself. Otherwise its
# stand-in, a file with arrays ``X`` and ``y``, is looked for in the folder that BIGLP_DATA names.
# Missing data is reported, with how to get it.


VARIABLE = "BIGLP_DATA"
MOST_ROWS = 100_000
"""Random rows of a whole data set that the tables are made with; 5-NN would take long on more."""


class MissingDataError(LookupError):
    """A data set is not here; the message says how to get it."""


@dataclass(frozen=True)
class StandIn:
    """What takes the place of one of the paper's data sets.

    Attributes
    ----------
    table : str
        The paper's data set.
    file : str
        Name of the file.
    title : str
        Name for people.
    pair : tuple of int
        The two classes that are kept.
    same_problem : bool
        Whether accuracies can be set beside the paper's.
    about : str
        What differs, in a sentence.
    most_rows : int, optional
        Random rows that are kept, where there are more.
    """

    table: str
    file: str
    title: str
    pair: tuple[int, int]
    same_problem: bool
    about: str
    most_rows: int | None = None


@dataclass(frozen=True)
class DataSet:
    """Rows and their true classes, 0 or 1."""

    stand_in: StandIn
    X: np.ndarray
    truth: np.ndarray

    @property
    def title(self) -> str:
        """Name and shape."""
        return f"{self.stand_in.title} ({self.X.shape[0]:,} × {self.X.shape[1]:,})"


STAND_INS = {
    "HEPMASS": StandIn(
        "HEPMASS",
        "higgs_subset_18k.npz",
        "HIGGS subset",
        (0, 1),
        False,
        "Another and much harder collision problem (raw HIGGS features); the paper's accuracies "
        "cannot be expected of it.",
    ),
    "SUSY": StandIn(
        "SUSY",
        "susy_subset_30k.npz",
        "SUSY subset",
        (0, 1),
        True,
        "30,000 of the 5,000,000 rows of the same data set.",
    ),
    "mnist8m": StandIn(
        "mnist8m",
        "mnist.npz",
        "MNIST 7 v 9",
        (7, 9),
        True,
        "The originals that mnist8m is deformed from.",
    ),
    "Protein": StandIn(
        "Protein",
        "protein_val_2871.npz",
        "Protein subset, classes 0 v 2",
        (0, 2),
        True,
        "The validation part of the same data set. The paper does not say which two of the three "
        "classes it kept. Its number of rows fits a pair with class 0, and of these 0 v 2 comes "
        "nearest to its propagation columns; its 5-NN column is nearer to 1 v 2, where classes "
        "are equally large (here the larger one alone is 69 %).",
    ),
    "Gisette": StandIn(
        "Gisette",
        "mnist.npz",
        "MNIST 4 v 9",
        (4, 9),
        False,
        "Gisette is 4 v 9 as well, but with 5,000 derived features, many of them without "
        "information; here are as many rows of raw pixels.",
        7_000,
    ),
}
DIGITS = StandIn(
    "Gisette",
    "(scikit-learn)",
    "digits 4 v 9",
    (4, 9),
    False,
    "Small digits that come with scikit-learn, because mnist.npz is missing.",
)


def find(file: str) -> Path:
    """Return the path of a data file, or explain what is missing."""
    folder = data_folder()
    if folder is not None and (folder / file).is_file():
        return folder / file
    why = f"{VARIABLE} is not set" if folder is None else f"it is not in {folder}"
    raise MissingDataError(
        f"{file} is missing: {why}. Set {VARIABLE} to a folder that holds {file} "
        "(a NumPy archive with arrays X, one row a sample, and y), and run again."
    )


def fetched(table: str) -> DataSet | None:
    """One of the paper's data sets itself, or as many of its rows as are used; None if not here."""
    try:
        whole = datasets.load(table.lower())
    except BadRowsError:
        return None
    chosen = np.arange(whole.n_rows)
    if whole.n_rows > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(whole.n_rows)[:MOST_ROWS])
    first, second = whole.classes
    part = f"{len(chosen):,} random rows of " if whole.n_rows > MOST_ROWS else ""
    itself = StandIn(
        table, "", f"{part}{table}", (first, second), True, "The paper's own data set."
    )
    return DataSet(
        itself,
        np.ascontiguousarray(whole.rows[chosen], dtype=np.float32),
        (np.asarray(whole.labels)[chosen] == second).astype(np.int8),
    )


def load_each(
    names: Iterable[str], missing: list[str], say: Callable[[str], None]
) -> Iterator[tuple[str, DataSet]]:
    """Load the paper's data sets in turn; those that are not here are said and added to a list."""
    for name in names:
        try:
            data = load(name)
        except MissingDataError as error:
            missing.append(f"{name}: {error}")
            say(f"{name} is left out. {error}")
        else:
            yield name, data


def load(table: str) -> DataSet:
    """Load one of the paper's data sets, or its stand-in."""
    itself = fetched(table)
    if itself is not None:
        return itself
    stand_in = STAND_INS[table]
    try:
        with np.load(find(stand_in.file)) as archive:
            rows, codes = archive["X"], archive["y"]
    except MissingDataError as error:
        if table != DIGITS.table:
            fetch = (
                f" Or get the paper's own data with: python -m paper datasets fetch {table.lower()}"
            )
            raise MissingDataError(f"{error}{fetch}") from None
        from sklearn.datasets import load_digits

        stand_in = DIGITS
        rows, codes = load_digits(return_X_y=True)
    chosen = np.flatnonzero(np.isin(codes, stand_in.pair))
    if stand_in.most_rows is not None and len(chosen) > stand_in.most_rows:
        chosen = np.sort(np.random.default_rng(0).permutation(chosen)[: stand_in.most_rows])
    return DataSet(
        stand_in,
        np.ascontiguousarray(rows[chosen], dtype=np.float32),
        (codes[chosen] == stand_in.pair[1]).astype(np.int8),
    )
