"""``biglp label``: a page in the browser to label rows with."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from biglp._core.parameters import METHOD, READING, STRICT, Parameter, column_names, group
from biglp.cli.errors import explained
from biglp.cli.options import Inputs, Options, local_path, output_to, with_options

PAGE = group(
    "Page",
    show=Parameter(None, "Columns to show beside each row.", "A,B,...", read=column_names),
    images=Parameter(
        None, "Folder of the pictures whose paths are in a column.", "FOLDER", read=Path
    ),
    shape=Parameter(
        None,
        "Shape of pictures whose pixels are the features; square ones are recognised.",
        "HxW|HxWx3|3xHxW",
    ),
    port=Parameter(0, "Port; any that is free by default.", "N", least=0, most=65535),
    host=Parameter("127.0.0.1", "Address to listen on.", "HOST"),
    i_know=Parameter(False, "Let other machines reach the page, unencrypted."),
    allow_host=Parameter(
        None, "Host that a reverse proxy is asked under.", "HOST[:PORT]", many=True
    ),
    no_browser=Parameter(False, "Open no browser; the address is printed."),
)
FOLDER = output_to(
    "Folder for what finishing writes: labels of all rows, model and report; beside the labels by "
    "default.",
    "FOLDER",
    None,
    read=local_path,
)


@explained
@with_options
def label(
    inputs: Inputs,
    *,
    labels: Annotated[Options, ("labels", "label_column", "id_column", "unlabelled")],
    page: Annotated[Options, PAGE],
    reading: Annotated[Options, READING | STRICT],
    method: Annotated[Options, METHOD],
    machine: Annotated[Options, ("memory", "threads", "device")],
    output: Annotated[Any, FOLDER],
    printing: Annotated[Options, ("quiet", "debug")],
) -> None:
    """Label rows on a page in the browser, with a model that follows.

    Shows the rows whose labels help most, from the first label on. Each answer is on disk before
    the page goes on, in a file 'row,label' that biglp fit --labels reads; start again to go on.

    [bold]biglp label[/bold] images.npy --classes cat,dog
    [bold]biglp label[/bold] mails.csv --text body --id-column id --labels answers.csv
    """
    from biglp._jobs.fit import FitJob
    from biglp._labelling.app import serve
    from biglp._labelling.server import Address
    from biglp._labelling.session import Wanted
    from biglp.cli.console import escape, results_console
    from biglp.cli.running import job_arguments, label_arguments

    given = label_arguments(labels)
    answers = given["labels"] or (default_labels(inputs[0]),)
    path = local_path(answers[-1])
    folder = output or path.with_name(f"{path.stem.removesuffix('.labels')}-out")
    arguments = job_arguments(inputs, folder, reading, machine, method=method)
    job = FitJob(**{**arguments, **given, "labels": answers, "command": None})
    classes = tuple(map(str, method.classes or ()))
    wanted = Wanted(job, tuple(page.show or ()), page.images, page.shape, classes)

    def began(url: str) -> None:
        if not printing.quiet:
            console = results_console()
            console.print(
                f"Answers go to [bold]{escape(str(path))}[/bold]. Ctrl-C ends the server."
            )
            console.print(f"Label at {escape(url)}", soft_wrap=True)
        if not page.no_browser:
            import threading
            import webbrowser

            # Browsers in a terminal come back when they are closed.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    n_labels = serve(
        wanted, Address(page.host, page.port, page.i_know), began, tuple(page.allow_host or ())
    )
    if not printing.quiet:
        console = results_console()
        console.print(f"Ended. {escape(str(path))} holds {n_labels:,} labels. Go on with")
        console.print(f"  {escape(shlex.join(['biglp', *sys.argv[1:]]))}", soft_wrap=True)


def default_labels(first: str) -> str:
    """File of the answers where none is named: called after the rows, in the working folder."""
    name = Path(first.rstrip("/").partition("::")[0]).name
    stem = name.partition(".")[0] or name
    letters = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in stem)
    return f"{letters.strip('-') or 'rows'}.labels.csv"
