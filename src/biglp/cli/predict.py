"""``biglp predict``: label new rows with a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biglp.cli import options as given
from biglp.cli.errors import explained


@explained
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model.biglp file.", show_default=False)
    ],
    inputs: given.Inputs,
    *,
    drop: given.Drop = None,
    delimiter: given.Delimiter = None,
    cache: given.Cache = None,
    memory: given.Memory = "auto",
    threads: given.Threads = None,
    engine: given.Engine = "threads",
    device: given.Device = "cpu",
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File ending in .npy or .parquet, or a folder.",
            rich_help_panel=given.OUTPUT,
            show_default=False,
        ),
    ],
    output_format: given.OutputFormat = "auto",
    probabilities: given.Probabilities = False,
    top: given.Top = None,
    confidence: given.Confidence = False,
    resume: given.Resume = False,
    overwrite: given.Overwrite = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Label new rows with a saved model; the training data is not needed.

    Columns of tables are matched by name; categories and missing values are treated as they were
    when the model was fitted.

    [bold]biglp predict[/bold] out/model.biglp new.parquet -o new-labels.parquet
    """
    from biglp._jobs.predict import PredictJob
    from biglp.cli.running import run_job

    job = PredictJob(
        inputs=tuple(inputs),
        output=output,
        reading=given.reading_options(drop=drop, delimiter=delimiter),
        cache=cache,
        outputs=given.wanted_outputs(probabilities, confidence, top),
        top=top,
        output_format=output_format,
        engine=engine,
        threads=threads,
        resume=resume,
        overwrite=overwrite,
        command=given.typed_command(),
        model=model,
        device=device,
        memory=memory,
    )
    run_job(job, as_json=as_json, quiet=quiet)
