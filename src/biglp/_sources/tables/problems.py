"""All that is wrong with a table, in one message, with the options that would work."""

from __future__ import annotations

from collections.abc import Mapping

from biglp._core.errors import BadRowsError
from biglp._rows.options import ReadOptions
from biglp._sources.tables.look import Look
from biglp._sources.tables.table import TableFile

MOST_NAMED = 8


class NoFeaturesError(BadRowsError):
    """A table of which no column is a feature, though it can be read.

    Attributes
    ----------
    left_out : dict of str to str
        Why each column is none.
    missing : dict of str to int
        Missing values of each column in the first rows.
    looked_at : int
        How many rows these are.
    """

    left_out: Mapping[str, str]
    missing: Mapping[str, int]
    looked_at: int

    @classmethod
    def of(
        cls, file: TableFile, looks: Mapping[str, Look], left_out: Mapping[str, str]
    ) -> NoFeaturesError:
        """Give the reasons."""
        reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        error = cls(
            f"{file.name} has no column that can be a feature: {reasons}. Name those that are "
            "features all the same with columns= (--columns)."
        )
        error.left_out = left_out
        error.missing = {name: look.missing for name, look in looks.items() if look.missing}
        error.looked_at = max((look.rows for look in looks.values()), default=0)
        return error


def refuse(file: TableFile, looks: Mapping[str, Look], options: ReadOptions) -> None:
    """Raise one error that names every column that cannot be used as the options say.

    Parameters
    ----------
    file : TableFile
        The first file of the table.
    looks : dict of str to Look
        What the first rows of each column hold.
    options : ReadOptions
    """
    asked = options.columns or ()
    looks = {name: look for name, look in looks.items() if name not in options.text}
    texts = [look for look in looks.values() if look.content == "text" or look.written]
    wanted = options.categorical == "auto"
    found: list[str] = []
    advice: dict[str, str] = {}
    if options.categorical == "error" and texts:
        shown = _some([f"{t.name!r} ({t.type}{file.text_example(t.name)})" for t in texts])
        # Categories may stand for numbers, in pandas and Arrow alike.
        coded = any(str(look.type).startswith("dictionary") for look in texts)
        what = "text or categories" if coded else "text"
        found.append(f"columns {shown} hold {what}, and features must be numbers")
        advice["categorical='auto'"] = "--categorical auto"
    other = [look for look in looks.values() if look.content == "other"]
    other = [look for look in other if not wanted or look.name in asked]
    if other:
        shown = _some([f"{look.name!r} ({look.type})" for look in other])
        found.append(f"columns {shown} hold neither numbers nor text")
        names = [look.name for look in other]
        advice[f"drop={names!r}"] = f"--drop {','.join(names)}"
    sentences = [look for look in texts if wanted and look.free_text and look.name in asked]
    if sentences:
        names = [look.name for look in sentences]
        found.append(f"columns {_some([repr(name) for name in names])} hold free text")
        advice[f"text={names!r}"] = " ".join(f"--text {name}" for name in names)
    mixed = [look for look in texts if look.mistake is not None]
    if mixed and options.missing == "error" and options.categorical != "error":
        shown = _some([f"{look.name!r} ({look.mistake!r})" for look in mixed])
        found.append(f"columns {shown} hold numbers, and texts that are none")
        advice["missing='auto'"] = "--missing auto"
    holes = [look for look in looks.values() if look.missing]
    if options.missing == "error" and found and holes:
        rows = next(iter(looks.values())).rows
        shown = _some([f"{look.name!r} ({look.missing:,})" for look in holes])
        found.append(f"columns {shown} have missing values in the first {rows:,} rows")
        advice["missing='auto'"] = "--missing auto"
    if found:
        raise BadRowsError(
            f"{file.name}: {'; '.join(found)}. This would do: {', '.join(advice)} "
            f"({' '.join(advice.values())}); or choose the feature columns (columns=, --columns), "
            "or leave some out (drop=, --drop)."
        )


def _some(shown: list[str]) -> str:
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more
