"""Accuracy on texts from names of classes alone, and with a few labels: words, meaning, names.

AG News (``ag_news_8k.csv`` of ``BIGLP_DATA``), all rows, in % of the rows without a label; means of
paired draws. Run with:  python benchmarks/names.py [--draws 5] [--csv out.csv]
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from biglp import LowRankLabelPropagation

PLAIN = {
    0: "world politics news",
    1: "sports news",
    2: "business news",
    3: "science and technology news",
}
DESCRIBED = {
    0: "war, elections and governments",
    1: "matches, athletes and leagues",
    2: "companies, markets and money",
    3: "software, internet and science",
}


def accuracy(table: pd.DataFrame, y: np.ndarray, seed: int, **options: object) -> float:
    """Percent of the rows without a label that are right."""
    fit = LowRankLabelPropagation(text=["text"], random_state=seed, **options).fit(
        table[["text"]], y
    )
    return float(100 * (fit.transduction_ == table["label"])[y < 0].mean())


def main() -> None:
    """Print a line for each number of labels a class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    table = pd.read_csv(Path(os.environ["BIGLP_DATA"]) / "ag_news_8k.csv")
    ways: dict[str, dict[str, object]] = {
        "words": {"text_model": "none"},
        "words and meaning": {},
        "and plain names": {"classes": PLAIN},
        "and descriptions": {"classes": DESCRIBED},
    }
    lines = []
    for each in (0, 1, 2, 5, 20, 100):
        right: dict[str, list[float]] = {name: [] for name in ways}
        for draw in range(asked.draws):
            rng, y = np.random.default_rng(1000 * draw + each), np.full(len(table), -1)
            for label in range(4):
                rows = rng.choice(np.flatnonzero(table["label"] == label), each, replace=False)
                y[rows] = label
            for name, options in ways.items():
                if each or "classes" in options:
                    right[name].append(accuracy(table, y, draw, **options))
        means = {name: round(float(np.mean(values)), 1) for name, values in right.items() if values}
        lines.append({"labels a class": each, **means})
        print(lines[-1], flush=True)
    if asked.csv is not None:
        pd.DataFrame(lines).to_csv(asked.csv, index=False)


if __name__ == "__main__":
    main()
