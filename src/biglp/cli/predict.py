"""``biglp predict``: label new rows with a model file."""

from __future__ import annotations

from typing import Annotated, Any

from biglp._core.parameters import MACHINE, PRINTING, RESULTS
from biglp._files.uri import as_place
from biglp.cli.errors import explained
from biglp.cli.options import Inputs, Options, argument, output_to, piped


def model_file(text: str) -> Any:
    """A model file, by its name or that of the folder that biglp fit has written it to."""
    from biglp._files.copies import is_folder  # loads NumPy

    place = as_place(text)
    return place if place.name.endswith(".biglp") or not is_folder(place) else place / "model.biglp"


FILE = output_to(
    "File ending in .npy, .parquet, .csv or .jsonl (.gz packs text), or a folder, which may be "
    "URIs (s3://…); or - for standard output.",
    "OUT",
    read=as_place,
)

READ = ("drop", "strict", "delimiter", "decimal", "text_encoding", "cache")


@explained
@piped("answers")
def predict(
    model: Annotated[
        Any, argument("MODEL", "A model.biglp file, or the folder of a fit.", model_file)
    ],
    inputs: Inputs,
    *,
    labels: Annotated[Options, ("id_column",)],
    reading: Annotated[
        Options, ("drop", "strict", "delimiter", "decimal", "text_encoding", "cache")
    ],
    machine: Annotated[Options, MACHINE],
    output: Annotated[Any, FILE],
    results: Annotated[Options, RESULTS],
    printing: Annotated[Options, PRINTING],
) -> None:
    """Label new rows with a saved model; the training data is not needed.

    Columns of tables are matched by name; categories and missing values are treated as they were
    when the model was fitted.

    [bold]biglp predict[/bold] out/model.biglp new.parquet -o new-labels.parquet
    cat new.csv | [bold]biglp predict[/bold] out/model.biglp - -o - > labels.csv
    """
    from biglp._jobs.predict import PredictJob
    from biglp.cli.running import job_arguments, run_job

    job = PredictJob(
        **job_arguments(inputs, output, reading, machine, results),
        id_column=labels.id_column,
        model=model,
    )
    run_job(job, printing)
