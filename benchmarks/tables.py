"""Tables as they are: biglp beside skrub's vectorisers with the usual classifiers.

Every method gets the same data frame and the same labels, drawn at random, and answers for all
other rows. ``tabular_pipeline`` learns from the labelled rows; ``TableVectorizer`` sees all rows,
as biglp does. biglp gets no option, and once ``text=`` where there is a text column.

Needs ``skrub`` (``pip install skrub``) and the tables of ``BIGLP_DATA``::

    python benchmarks/tables.py --draws 5 -o tables.csv
    python benchmarks/tables.py --show tables.csv
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skrub import TableVectorizer, tabular_pipeline

from accuracy_scores import auc, log_loss
from biglp import LowRankLabelPropagation

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
HEADER = ("data", "rows", "labels", "draw", "method", "auc", "log_loss", "seconds")
LABELS = (20, 100, 200, 500)
CLASSIFIERS: dict[str, Callable[[int], BaseEstimator]] = {
    "logistic": lambda seed: LogisticRegression(max_iter=1000, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(300, random_state=seed, n_jobs=2),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


def load(name: str, n_rows: int | None) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """A table without its labels, the classes (0, 1) and its text columns."""
    if name == "customers":
        from customers import make_customers

        table, left = make_customers(n_rows or 120_000)
        return table, left.astype(int), ["comment"]
    label, positive = {"bank_marketing": ("y", "yes"), "online_shoppers": ("Revenue", True)}[name]
    table = pd.read_csv(Path(os.environ["BIGLP_DATA"]) / f"{name}.csv")
    table = table.sample(frac=1, random_state=0).reset_index(drop=True)[:n_rows]
    return table.drop(columns=label), (table[label] == positive).to_numpy().astype(int), []


def methods(table: pd.DataFrame, texts: list[str]) -> dict[str, Callable[..., np.ndarray]]:
    """Functions from labels (−1: hidden) and a seed to the probabilities of all rows."""
    vectors = TableVectorizer().fit_transform(table)
    scaled = make_pipeline(StandardScaler()).fit_transform(vectors.fillna(vectors.median()))

    def ours(text: list[str] | None) -> Callable[..., np.ndarray]:
        def answer(y: np.ndarray, seed: int) -> np.ndarray:
            model = LowRankLabelPropagation(random_state=seed, text=text).fit(table, y)
            return model.label_distributions_

        return answer

    def supervised(rows: Any, make: Callable[[int], Any]) -> Callable[..., np.ndarray]:
        def answer(y: np.ndarray, seed: int) -> np.ndarray:
            known = np.flatnonzero(y >= 0)
            some = rows.iloc[known] if hasattr(rows, "iloc") else rows[known]
            return make(seed).fit(some, y[known]).predict_proba(rows)

        return answer

    found = {"biglp": ours(None)}
    if texts:
        found["biglp, text="] = ours(texts)
    for name, make in CLASSIFIERS.items():
        found[f"tabular_pipeline, {name}"] = supervised(
            table, lambda seed, make=make: tabular_pipeline(make(seed))
        )
        rows = scaled if name == "logistic" else vectors
        found[f"TableVectorizer, {name}"] = supervised(rows, make)
    return found


def draw(truth: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Labels of rows drawn at random, at least two of each class; −1 for the others."""
    for attempt in range(1000):
        rng = np.random.default_rng([seed, count, attempt])
        rows = rng.choice(len(truth), count, replace=False)
        if np.bincount(truth[rows], minlength=2).min() >= 2:
            break
    labels = np.full(len(truth), -1)
    labels[rows] = truth[rows]
    return labels


def run(name: str, n_rows: int | None, counts: list[int], draws: int) -> Iterator[list[Any]]:
    """Results, one after the other."""
    table, truth, texts = load(name, n_rows)
    for method, answer in methods(table, texts).items():
        for count in counts:
            for seed in range(draws):
                labels = draw(truth, count, seed)
                hidden = labels < 0
                began = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    stated = np.asarray(answer(labels, seed), dtype=float)[hidden]
                seconds = time.perf_counter() - began
                area, loss = auc(stated, truth[hidden]), log_loss(stated, truth[hidden])
                yield [name, len(truth), count, seed, method, area, loss, seconds]


def show(path: Path) -> None:
    """Print means over the draws as Markdown."""
    results = pd.read_csv(path).drop_duplicates(["data", "labels", "draw", "method"], keep="last")
    for figure in ("auc", "log_loss"):
        means = results.pivot_table(index=["data", "labels"], columns="method", values=figure)
        print(f"\n{figure}\n\n| data | labels | {' | '.join(means.columns)} |")
        print("|" + "---|" * (len(means.columns) + 2))
        for (data, labels), line in means.iterrows():
            cells = ["" if np.isnan(value) else f"{value:.3f}" for value in line]
            print(f"| {data} | {labels} | {' | '.join(cells)} |")


def main() -> None:
    """Run or show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="customers,bank_marketing,online_shoppers")
    parser.add_argument("--labels", default=",".join(map(str, LABELS)))
    parser.add_argument("--rows", type=int, help="first rows only")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--show", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("tables.csv"))
    asked = parser.parse_args()
    if asked.show:
        show(asked.show)
        return
    new = not asked.output.exists()
    with asked.output.open("a", newline="") as file:
        lines = csv.writer(file)
        if new:
            lines.writerow(HEADER)
        for name in asked.data.split(","):
            for line in run(
                name, asked.rows, [int(n) for n in asked.labels.split(",")], asked.draws
            ):
                lines.writerow(line)
                file.flush()
    show(asked.output)


if __name__ == "__main__":
    main()
