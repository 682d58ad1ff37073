"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

READING, METHOD, MACHINE, OUTPUT = "Reading the rows", "Method", "Machine", "Output"

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Rows: .npy, .parquet, .csv, .arrow, .libsvm files, a folder or pattern of tables, or "
        "sim:ROWSxFEATURES for made-up rows.",
        show_default=False,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Labels: one a row (-1 or empty where there is none), or 'row,label' or "
        "'row,label,weight'.",
        rich_help_panel=READING,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column that holds the labels.", rich_help_panel=READING),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column that holds the weights of the labels.",
        rich_help_panel=READING,
    ),
]
Unlabelled = Annotated[
    str,
    typer.Option(
        metavar="VALUE",
        help="What marks a row without a label, beside empty.",
        rich_help_panel=READING,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...", help="Feature columns; all by default.", rich_help_panel=READING
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Columns that are no features.", rich_help_panel=READING),
]
Categorical = Annotated[
    str,
    typer.Option(
        metavar="error|onehot",
        help="What to do with text columns: refuse, or one feature a category.",
        rich_help_panel=READING,
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="error|mean",
        help="What to do with missing values: refuse, or fill in the mean.",
        rich_help_panel=READING,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="Delimiter of a text table; found by looking by default.",
        rich_help_panel=READING,
    ),
]
DType = Annotated[
    str | None,
    typer.Option(
        metavar="float32|float64",
        help="Precision of the rows of a table; text is float64 by default.",
        rich_help_panel=READING,
    ),
]
Cache = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER|never",
        help="Where text and Parquet are converted to raw rows; beside the output by default.",
        rich_help_panel=READING,
    ),
]
Landmarks = Annotated[
    str,
    typer.Option(
        "--n-landmarks",
        "-k",
        metavar="K",
        help="Number of landmarks.",
        rich_help_panel=METHOD,
    ),
]
Memory = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Memory that the whole process may take, such as 4GB; auto is half of what is free.",
        rich_help_panel=MACHINE,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="threads|serial|mpi|dask",
        help="Who does the work; the answer is the same.",
        rich_help_panel=MACHINE,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Threads; by default one a core, as far as memory allows.",
        rich_help_panel=MACHINE,
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="cpu|cuda", help="Where the arithmetic runs.", rich_help_panel=MACHINE),
]
OutputFormat = Annotated[
    str,
    typer.Option(
        metavar="auto|npy|parquet",
        help="Format of the labels; auto is Parquet for tables, else .npy.",
        rich_help_panel=OUTPUT,
    ),
]
Probabilities = Annotated[
    bool,
    typer.Option("--probabilities", help="Also write class probabilities.", rich_help_panel=OUTPUT),
]
Top = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        min=1,
        help="Also write the K likeliest classes and their probabilities.",
        rich_help_panel=OUTPUT,
    ),
]
Confidence = Annotated[
    bool,
    typer.Option(
        "--confidence",
        help="Also write the probability of the chosen class.",
        rich_help_panel=OUTPUT,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on where an interrupted run stopped.", rich_help_panel=OUTPUT
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace earlier results.", rich_help_panel=OUTPUT),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print the summary as JSON, for scripts.", rich_help_panel=OUTPUT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=OUTPUT),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show where an error came from.", rich_help_panel=OUTPUT),
]
OutFolder = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Folder for labels, model.biglp and summary.json.",
        rich_help_panel=OUTPUT,
        show_default=False,
    ),
]


def reading_options(
    columns: str | None = None,
    drop: str | None = None,
    categorical: str = "error",
    missing: str = "error",
    delimiter: str | None = None,
    dtype: str | None = None,
) -> dict[str, Any]:
    """Options of the reader, without those that were not given."""
    given = {
        "columns": names(columns),
        "drop": names(drop) or (),
        "categorical": categorical,
        "missing": missing,
        "delimiter": "\t" if delimiter in ("tab", "\\t") else delimiter,
        "dtype": dtype,
    }
    default = {"columns": None, "drop": (), "categorical": "error", "missing": "error"}
    return {name: value for name, value in given.items() if value != default.get(name)}


def wanted_outputs(probabilities: bool, confidence: bool, top: int | None) -> tuple[str, ...]:
    """What is written for each row."""
    if probabilities and top is not None:
        raise typer.BadParameter("give --probabilities for all classes or --top K for some.")
    more = probabilities or top is not None
    return (
        "label",
        *(("confidence",) if confidence else ()),
        *(("probabilities",) if more else ()),
    )


def names(text: str | None) -> tuple[str, ...] | None:
    """Split a list of column names; a name with a comma may stand in quotes."""
    if text is None:
        return None
    import csv

    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True)))


def auto_or_number(name: str, text: str, kind: type = float) -> Any:
    """Read a number or "auto"."""
    if text == "auto":
        return text
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"{name} {text!r} is neither 'auto' nor {what}.") from None


def balance(text: str) -> Any:
    """Read a class balance: a word, or the classes' shares."""
    if "," not in text:
        return text
    try:
        return [float(share) for share in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"--class-balance {text!r} is not auto, mass, share, centre or none, and not shares "
            "such as 0.9,0.1."
        ) from None


def whole_or_text(text: str) -> int | str:
    """Read a whole number where the text is one."""
    try:
        return int(text)
    except ValueError:
        return text


def typed_command() -> str:
    """What the user typed."""
    return shlex.join(["biglp", *sys.argv[1:]])


def resuming_command() -> str:
    """What the user should type to go on."""
    words = [word for word in sys.argv[1:] if word not in ("--overwrite", "--resume")]
    return shlex.join(["biglp", *words, "--resume"])
