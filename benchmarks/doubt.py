"""How well wrong labels are found, and what they cost.

Of 500 labels drawn at random 10 % are replaced by another class, drawn evenly. Measured, in
percent and over ten draws: the average precision of biglp's list of doubtful labels and of its
ranking of all labels, beside cleanlab's with cross-validated logistic regression on standardised
rows; and the accuracy on all unlabelled rows with these labels and with the right ones. The average
precision of a list counts wrong labels that are not on it as not found.

Needs cleanlab.  Run with:  BIGLP_DATA=folder python benchmarks/doubt.py [names] [--draws 10]
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from biglp import LowRankLabelPropagation

ROWS, LABELS, SHARE = 8000, 500, 0.1
FIRST_SEED = 1000
COLUMNS = {
    "list": "biglp, list",
    "cleanlab list": "cleanlab, list",
    "ranking": "biglp, all ranked",
    "cleanlab ranking": "cleanlab, all ranked",
    "clean": "accuracy, right labels",
    "noisy": "with wrong ones",
    "loss": "lost",
    "named": "probably wrong",
    "named right": "of them wrong",
}


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Rows as biglp gets them, class codes, and the scaling to ask for."""
    if name in ("mnist", "susy"):
        file = {"mnist": "mnist.npz", "susy": "susy_subset_30k.npz"}[name]
        with np.load(folder / file) as data:
            rows, truth, scaling = data["X"], data["y"], "auto"
    else:
        file = {"bank": "bank_marketing.csv", "ag_news": "ag_news_8k.csv"}[name]
        with open(folder / file, newline="", encoding="utf-8") as lines:
            table = np.array(list(csv.reader(lines))[1:], dtype=object)
        rows = table_rows(table[:, :-1]) if name == "bank" else text_rows(table[:, 1])
        truth, scaling = table[:, -1 if name == "bank" else 0].astype(str), "none"
    chosen = np.random.default_rng(0).permutation(len(truth))[:ROWS]
    codes = np.unique(truth, return_inverse=True)[1]
    return rows[chosen].astype(np.float32), codes[chosen], scaling


def table_rows(table: np.ndarray) -> np.ndarray:
    """Numbers standardised, text one-hot."""
    columns = []
    for column in table.T:
        try:
            numbers = column.astype(float)
            columns.append((numbers - numbers.mean())[:, None] / (numbers.std() or 1.0))
        except ValueError:
            columns.append(column[:, None] == np.unique(column.astype(str)))
    return np.hstack(columns)


def text_rows(texts: np.ndarray) -> np.ndarray:
    """128 leading directions of tf-idf, at unit length."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english").fit_transform(texts)
    return normalize(TruncatedSVD(128, random_state=0).fit_transform(words))


def list_precision(found: np.ndarray, wrong: np.ndarray) -> float:
    """Average precision of a list of row numbers."""
    hits = np.isin(found, wrong)
    precision = np.cumsum(hits) / np.arange(1, len(found) + 1)
    return float(precision[hits].sum() / len(wrong))


def by_cleanlab(rows: np.ndarray, given: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of labels on cleanlab's list, and of all labels in the order of its ranking."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    model = LogisticRegression(max_iter=1000)
    shares = cross_val_predict(model, rows, given, cv=folds, method="predict_proba")
    ranked = np.argsort(get_label_quality_scores(given, shares), kind="stable")
    by = "self_confidence"
    return find_label_issues(given, shares, return_indices_ranked_by=by, n_jobs=1), ranked


def measure(rows: np.ndarray, truth: np.ndarray, scaling: str, seed: int) -> dict[str, float]:
    """One draw."""
    rng = np.random.default_rng(seed)
    known = np.sort(rng.choice(len(truth), LABELS, replace=False))
    wrong = rng.choice(LABELS, int(SHARE * LABELS), replace=False)
    n_classes = int(truth.max()) + 1
    given = truth[known].copy()
    given[wrong] = (given[wrong] + rng.integers(1, n_classes, len(wrong))) % n_classes
    found: dict[str, Any] = {}
    hidden = np.setdiff1d(np.arange(len(truth)), known)
    for name, labels in (("clean", truth[known]), ("noisy", given)):
        y = np.full(len(truth), -1)
        y[known] = labels
        model = LowRankLabelPropagation(scaling=scaling, engine="serial").fit(rows, y)
        found[name] = (model.transduction_ == truth)[hidden].mean()
    found["loss"] = found["clean"] - found["noisy"]
    doubtful, ranked = model.doubtful_labels(), model.doubtful_labels(least=0)
    named = model.doubtful_labels(least=0.5).rows
    found["named"] = len(named) / 100  # a number among percentages
    found["named right"] = np.isin(named, known[wrong]).mean() if len(named) else np.nan
    found["list"] = list_precision(doubtful.rows, known[wrong])
    found["ranking"] = list_precision(ranked.rows, known[wrong])
    spread = rows.std(axis=0)
    standard = (rows[known] - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    listed, order = by_cleanlab(standard, given, seed)
    found["cleanlab list"] = list_precision(listed, wrong)
    found["cleanlab ranking"] = list_precision(order, wrong)
    return {name: 100 * float(found[name]) for name in COLUMNS}


def main() -> None:
    """Print a line of the table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["mnist", "bank", "susy", "ag_news"])
    parser.add_argument("--draws", type=int, default=10)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data |", " | ".join(COLUMNS.values()), "|\n|---" + "|---" * len(COLUMNS) + "|")
    for name in asked.names:
        data = load(Path(os.environ["BIGLP_DATA"]), name)
        draws = [measure(*data, FIRST_SEED + draw) for draw in range(asked.draws)]
        means = (f"{np.nanmean([draw[column] for draw in draws]):.1f}" for column in COLUMNS)
        print(f"| {name} |", " | ".join(means), "|", flush=True)


if __name__ == "__main__":
    main()
