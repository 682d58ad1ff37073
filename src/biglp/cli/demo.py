"""``biglp demo``: real data, from a file to labels, beside scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from biglp._core.parameters import Parameter
from biglp.cli.errors import explained
from biglp.cli.options import Options, local_path, output_to, with_options

FOLDER = output_to("Where the files go.", "FOLDER", Path("demo-out"), read=local_path)
LABELS = Parameter(5, "Labels of each digit that are shown.", "N", least=1, most=100)
SEED = Parameter(0, "Which labels are shown.", "N", least=0)


@explained
@with_options
def demo(
    *,
    output: Annotated[Path, FOLDER],
    labels_per_class: Annotated[int, LABELS],
    seed: Annotated[int, SEED],
    printing: Annotated[Options, ("as_json", "debug")],
) -> None:
    """Label 1,797 handwritten digits from a few labels, in seconds.

    The data comes with scikit-learn, whose LabelSpreading is run on the same labels.
    """
    import json
    import time
    import warnings

    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from rich.table import Table
    from sklearn.datasets import load_digits
    from sklearn.semi_supervised import LabelSpreading

    from biglp._jobs.fit import FitJob
    from biglp.cli.console import progress_bars, results_console

    # A table of pixels, with most labels empty.
    pixels, truth = load_digits(return_X_y=True)
    pixels, rng = pixels.astype(np.float32), np.random.default_rng(seed)
    shown = np.zeros(len(truth), dtype=bool)
    for digit in range(10):
        shown[rng.choice(np.flatnonzero(truth == digit), labels_per_class, replace=False)] = True
    columns = {f"pixel_{i}": column for i, column in enumerate(pixels.T)}
    output.mkdir(parents=True, exist_ok=True)
    data, result = output / "digits.parquet", output / "result"
    pq.write_table(pa.table(columns | {"digit": pa.array(truth, mask=~shown)}), data)

    console = results_console()
    if not printing.as_json:
        console.print(
            f"[bold]{data}[/bold]: 1,797 handwritten digits, 8 × 8 pixels; {labels_per_class} of "
            "each digit labelled, the rest hidden.\nRunning: [dim]biglp fit "
            f"{data} --label-column digit -o {result}[/dim]"
        )
    with progress_bars() as progress:
        job = FitJob((str(data),), result, label_column="digit", overwrite=True)
        summary = job.run(progress)
    labels = pq.read_table(result / "labels.parquet")["label"].to_numpy()
    methods = [("biglp fit", labels, summary["seconds"])]
    for words, settings in (("", {}), ("kernel='knn'", {"kernel": "knn"})):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of rows that nothing reaches
            model = LabelSpreading(**settings).fit(pixels, np.where(shown, truth, -1))
        taken = time.perf_counter() - began
        methods.append((f"scikit-learn LabelSpreading({words})", model.transduction_, taken))
    lines = [
        {"method": name, "accuracy": float((found == truth)[~shown].mean()), "seconds": seconds}
        for name, found, seconds in methods
    ]
    if printing.as_json:
        console.print_json(json.dumps({"methods": lines, "summary": summary}))
        return
    table = Table(title="Hidden digits found", title_style="bold")
    table.add_column("method")
    table.add_column("accuracy", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("memory grows with")
    best = max(line["accuracy"] for line in lines)
    for number, line in enumerate(lines):
        table.add_row(
            line["method"],
            f"{line['accuracy']:.1%}",
            f"{line['seconds']:.2f}",
            "rows × rows" if number else "rows, and fits the budget",
            style="bold green" if line["accuracy"] == best else "",
        )
    console.print(table)
    written = ", ".join([*summary["files"].values(), str(result / "summary.json")])
    console.print(f"Written: {written}", soft_wrap=True)
    console.print(
        "\nNext, your own file:\n"
        "  biglp inspect data.parquet --label-column y\n"
        "  biglp fit data.parquet --label-column y -o out/"
    )
    console.print(
        f"\n[bold]The report, to open in a browser: {summary['files']['report']}[/bold]",
        soft_wrap=True,
    )
