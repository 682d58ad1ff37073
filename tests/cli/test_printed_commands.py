"""Commands that biglp prints: they run as they are printed."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from cli_tools import done

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
ROWS = 240


def printed(text: str) -> list[list[str]]:
    """Commands among what was printed, as words without the first."""
    return [shlex.split(line)[1:] for line in re.findall(r"^ *(biglp .*)$", text, re.M)]


@pytest.fixture
def truth(here) -> np.ndarray:
    """Tables of one file and of five that need options to be read right; the class of each row."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dög"], ROWS)
    centre = np.where(truth == "cat", -2.0, 2.0)
    a, b = centre + rng.normal(size=ROWS), rng.normal(size=ROWS)
    lines = [
        f"k{row}\t{a[row]:.3f}\t{b[row]:.3f}\tnoise {row % 3}\tx{row % 2}\t"
        f"{truth[row] if row % 4 == 0 else ''}"
        for row in range(ROWS)
    ]
    header = "key\ta\tb\tthe note, long\tq\tkind"
    Path("rows.tsv").write_text("\n".join([header, *lines]) + "\n", encoding="cp1252")
    Path("parts").mkdir()
    for part in range(5):
        own = lines[part * ROWS // 5 : (part + 1) * ROWS // 5]
        text = "\n".join([header, *own]) + "\n"
        Path(f"parts/rows-{part}.tsv").write_text(text, encoding="cp1252")
    np.save("rows.npy", np.column_stack([a, b]))
    return truth


READING = ("--encoding", "cp1252", "--delimiter", "tab", "--drop", '"the note, long",q')
KNOWN = ("--label-column", "kind", "--id-column", "key")


@pytest.mark.parametrize(
    "given",
    [
        ("rows.tsv", *READING, *KNOWN),
        ("parts/*.tsv", *READING, *KNOWN),
        ("rows.npy", "--metadata", "rows.tsv", *KNOWN),
    ],
)
def test_after_the_first_suggestions(truth, given):
    shown = done("suggest", *given, "-n", "40", "-o", "next.csv").stdout
    with open("next.csv", newline="") as file:
        table = list(csv.DictReader(file))
    with open("next.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows({**line, "label": truth[int(line["row"])]} for line in table)
    fit, suggest = printed(shown)
    assert fit.count("--drop") <= 1
    told = done(*fit).stdout
    assert re.search(r"cat +\d+", told)
    labels = next(Path("out").glob("labels.*"))
    assert labels.exists()
    assert printed(done(*suggest).stdout) == []


def test_after_the_first_suggestions_for_standard_input(truth):
    from typer.testing import CliRunner

    from biglp.cli import app

    rows = Path("rows.tsv").read_text(encoding="cp1252").encode()
    shown = CliRunner().invoke(app, ["suggest", "-", "--label-column", "kind"], input=rows)
    (fit,) = printed(shown.stdout)
    lines = [f"{row},{name}" for row, name in enumerate(truth[:20])]
    Path("next.csv").write_text("\n".join(["row,label", *lines]) + "\n", encoding="utf-8")
    assert CliRunner().invoke(app, fit, input=rows).exit_code == 0
