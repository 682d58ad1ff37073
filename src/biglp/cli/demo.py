"""``biglp demo``: real data, from a file to labels, beside scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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

    import pyarrow.parquet as pq
    from rich.table import Table

    from biglp._jobs.fit import FitJob
    from biglp.cli.console import progress_bars, results_console

    console = results_console()
    data, hidden = _write_data(output, labels_per_class, seed)
    job = FitJob(
        (str(data),), output / "result", label_column="digit", overwrite=True, parameters={}
    )
    command = f"biglp fit {data} --label-column digit -o {output / 'result'}"
    if not printing.as_json:
        console.print(
            f"[bold]{data}[/bold]: 1,797 handwritten digits, 8 × 8 pixels; {labels_per_class} of "
            f"each digit labelled, the rest hidden.\nRunning: [dim]{command}[/dim]"
        )
    with progress_bars() as progress:
        summary = job.run(progress)
    found = pq.read_table(output / "result" / "labels.parquet")["label"].to_numpy()
    rows = [("biglp fit", float((found == hidden)[hidden >= 0].mean()), summary["seconds"])]
    rows += _scikit_learn(data, hidden)
    if printing.as_json:
        facts = [{"method": name, "accuracy": right, "seconds": s} for name, right, s in rows]
        console.print_json(json.dumps({"methods": facts, "summary": summary}))
        return
    table = Table(title="Hidden digits found", title_style="bold")
    table.add_column("method")
    table.add_column("accuracy", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("memory grows with")
    best = max(right for _, right, _ in rows)
    for line, (name, right, seconds) in enumerate(rows):
        style = "bold green" if right == best else ""
        grows = "rows × rows" if line else "rows, and fits the budget"
        table.add_row(name, f"{right:.1%}", f"{seconds:.2f}", grows, style=style)
    console.print(table)
    written = ", ".join([*summary["files"].values(), str(output / "result" / "summary.json")])
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


def _write_data(folder: Path, labels_per_class: int, seed: int) -> tuple[Path, Any]:
    """Write the digits as a table with most labels empty; return its path and the hidden ones."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from sklearn.datasets import load_digits

    pixels, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    shown = np.zeros(len(truth), dtype=bool)
    for digit in range(10):
        shown[rng.choice(np.flatnonzero(truth == digit), labels_per_class, replace=False)] = True
    columns = {f"pixel_{i}": pixels[:, i].astype(np.float32) for i in range(pixels.shape[1])}
    columns["digit"] = pa.array(truth, mask=~shown)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "digits.parquet"
    pq.write_table(pa.table(columns), path)
    return path, np.where(shown, -1, truth)


def _scikit_learn(data: Path, hidden: Any) -> list[tuple[str, float, float]]:
    """Accuracy and seconds of scikit-learn's label spreading on the same labels."""
    import time
    import warnings

    import numpy as np
    import pyarrow.parquet as pq
    from sklearn.semi_supervised import LabelSpreading

    table = pq.read_table(data)
    shown = table["digit"].fill_null(-1).to_numpy()
    rows = np.column_stack([table[name].to_numpy() for name in table.column_names[:-1]])
    results = []
    for name, settings in (
        ("LabelSpreading()", {}),
        ("LabelSpreading(kernel='knn')", {"kernel": "knn"}),
    ):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of rows that nothing reaches
            model = LabelSpreading(**settings).fit(rows, shown)
        seconds = time.perf_counter() - began
        right = float((model.transduction_ == hidden)[hidden >= 0].mean())
        results.append((f"scikit-learn {name}", right, seconds))
    return results
