"""``biglp label``: a page in the browser to label rows with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from biglp.cli.errors import explained
from biglp.cli.groups import grouped, only
from biglp.cli.label_options import Labels
from biglp.cli.options import Inputs, Machine, Method, Printing, Reading, output_to
from biglp.cli.values import local_path, names

PAGE = "Page"


@explained
@grouped
def label(
    inputs: Inputs,
    *,
    labels: Annotated[Labels, only("labels", "label_column", "id_column", "unlabelled")],
    classes: Annotated[
        Any,
        typer.Option(
            metavar="A,B,...",
            help="Classes, in the order of their keys.",
            parser=names,
            rich_help_panel=PAGE,
        ),
    ] = None,
    show: Annotated[
        Any,
        typer.Option(
            metavar="A,B,...",
            help="Columns to show beside each row.",
            parser=names,
            rich_help_panel=PAGE,
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the pictures whose paths are in a column.",
            rich_help_panel=PAGE,
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="HxW|HxWx3|3xHxW",
            help="Shape of pictures whose pixels are the features; square ones are recognised.",
            rich_help_panel=PAGE,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            help="Port; any that is free by default.",
            rich_help_panel=PAGE,
        ),
    ] = 0,
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="Address to listen on.", rich_help_panel=PAGE),
    ] = "127.0.0.1",
    i_know: Annotated[
        bool,
        typer.Option(
            "--i-know", help="Let other machines reach the page, unencrypted.", rich_help_panel=PAGE
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Host that a reverse proxy is asked under.",
            rich_help_panel=PAGE,
        ),
    ] = None,
    no_browser: Annotated[
        bool,
        typer.Option(
            "--no-browser", help="Open no browser; the address is printed.", rich_help_panel=PAGE
        ),
    ] = False,
    reading: Reading,
    method: Method,
    machine: Annotated[Machine, only("memory", "threads", "device")],
    output: Annotated[
        Any,
        output_to(
            parser=local_path,
            metavar="FOLDER",
            help="Folder for what finishing writes: "
            "labels of all rows, model and report; beside the labels by default.",
        ),
    ] = None,
    printing: Annotated[Printing, only("quiet", "debug")],
) -> None:
    """Label rows on a page in the browser, with a model that follows.

    Shows the rows whose labels help most, from the first label on. Each answer is on disk before
    the page goes on, in a file 'row,label' that biglp fit --labels reads; start again to go on.

    [bold]biglp label[/bold] images.npy --classes cat,dog
    [bold]biglp label[/bold] mails.csv --text body --id-column id --labels answers.csv
    """
    from biglp._jobs.fit import FitJob
    from biglp._pages.label.serve import Address, serve
    from biglp._pages.label.session import Wanted
    from biglp.cli.console import results_console
    from biglp.cli.errors import escape
    from biglp.cli.running import placing

    given = labels.given()
    answers = given["labels"] or (default_labels(inputs[0]),)
    path = local_path(answers[-1])
    job = FitJob(
        inputs=tuple(inputs),
        output=output or path.with_name(f"{path.stem.removesuffix('.labels')}-out"),
        reading=reading.given(),
        metadata=reading.metadata,
        cache=reading.cache,
        threads=machine.threads,
        **{**given, "labels": answers},
        parameters={**asdict(method), **placing(machine)},
    )
    wanted = Wanted(job, tuple(show or ()), images, shape, tuple(classes or ()))

    def began(url: str) -> None:
        if not printing.quiet:
            console = results_console()
            console.print(
                f"Answers go to [bold]{escape(str(path))}[/bold]. Ctrl-C ends the server."
            )
            console.print(f"Label at {escape(url)}", soft_wrap=True)
        if not no_browser:
            import threading
            import webbrowser

            # Browsers in a terminal come back when they are closed.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    n_labels = serve(wanted, Address(host, port, i_know), began, tuple(allow_host or ()))
    if not printing.quiet:
        results_console().print(
            f"Ended. {escape(str(path))} holds {n_labels:,} labels; the same command goes on."
        )


def default_labels(first: str) -> str:
    """File of the answers where none is named: called after the rows, in the working folder."""
    name = Path(first.rstrip("/").partition("::")[0]).name
    stem = name.partition(".")[0] or name
    letters = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in stem)
    return f"{letters.strip('-') or 'rows'}.labels.csv"
