"""The options that say where labels and IDs are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any

import typer

from biglp.cli.options import READING
from biglp.cli.values import whole_or_text

_label_option = partial(typer.Option, rich_help_panel=READING)


@dataclass(frozen=True)
class Labels:
    """Where the labels are."""

    labels: Annotated[
        list[str] | None,
        _label_option(
            "--labels",
            metavar="FILE",
            help="Labels: one a row (-1 or empty where there is none), 'row,label', 'id,label', "
            "each with a weight or without, or an export of Label Studio or Argilla. May be given "
            "several times, and beside --label-column: the last label of a row counts.",
        ),
    ] = None
    label_column: Annotated[
        str | None, _label_option(metavar="NAME", help="Column that holds labels.")
    ] = None
    id_column: Annotated[
        str | None,
        _label_option(
            metavar="NAME",
            help="Column that holds the rows' IDs: labels are joined by it, results carry it.",
        ),
    ] = None
    weight_column: Annotated[
        str | None,
        _label_option(metavar="NAME", help="Column that holds the weights of the labels."),
    ] = None
    unlabelled: Annotated[
        list[str] | None,
        _label_option(
            metavar="VALUE",
            help="What marks a row without a label, beside empty: by default -1 and what programs "
            "write for a missing value (NA, null, ?, …). May be given several times.",
            parser=whole_or_text,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Where the labels are, as a job takes it."""
        found = asdict(self)
        found["labels"] = tuple(self.labels or ())
        found["unlabelled"] = tuple(self.unlabelled or ()) or None
        return found
