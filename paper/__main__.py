"""``python -m paper``, from the root of a clone."""

from __future__ import annotations

import typer

from biglp.cli import Command, Group
from biglp.cli.errors import EXIT_CODES
from paper.commands import datasets, peers, reproduce

app = typer.Typer(
    name="python -m paper",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    help="The paper's experiments, its data sets, and biglp beside its peers.",
)
for command in (reproduce, peers):
    app.command(cls=Command, epilog=EXIT_CODES)(command)
app.add_typer(datasets, epilog=EXIT_CODES)

if __name__ == "__main__":
    app(prog_name="python -m paper")
