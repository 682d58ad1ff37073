"""A table as people have it: 120,000 customers, of whom 200 are known to have left or stayed.

It has dates, truth values, categories of three to two thousand values, long tails, missing values,
a text column and IDs, and nothing of it is prepared::

    python examples/customers.py customers.csv
    biglp inspect customers.csv --label-column left
    biglp fit customers.csv --label-column left -o out/
    biglp predict out/model.biglp customers.csv -o again.parquet

Who left is known for 200 customers; ``customers.truth.npy`` has the answers for all of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

GOOD = "fast friendly easy great helpful reliable cheap thanks works always love"
BAD = "slow rude broken late expensive cancel refund waiting error never unhappy"
PLAIN = "the service order app delivery invoice account with about my a last week called"


def make_customers(n_rows: int = 120_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Make customers, and whether each one left.

    Parameters
    ----------
    n_rows : int
    seed : int

    Returns
    -------
    table : DataFrame
    left : ndarray of bool of shape (n_rows,)
    """
    rng = np.random.default_rng(seed)
    patience = rng.normal(size=n_rows)  # what decides, and is in no column
    wealth = rng.normal(size=n_rows)
    plan = np.array(["basic", "plus", "premium"])[
        np.digitize(wealth + rng.normal(size=n_rows), [0, 1.2])
    ]
    branch, branch_effect = _categories(rng, n_rows, 40, "branch")
    city, city_effect = _categories(rng, n_rows, 2000, "city")
    occupation, occupation_effect = _categories(rng, n_rows, 120, "job")
    joined = pd.Timestamp("2024-12-31") - pd.to_timedelta(
        rng.gamma(2, 400, n_rows).astype(int), "D"
    )
    tenure = (pd.Timestamp("2024-12-31") - joined).days.to_numpy()
    idle = rng.gamma(1.2, 15, n_rows) * np.exp(-0.5 * patience)
    seen = pd.Timestamp("2024-12-31") - pd.to_timedelta(np.round(idle * 86_400), "s")
    tickets = rng.poisson(np.exp(0.3 - 0.7 * patience))
    spend = np.exp(3 + 0.8 * wealth + 0.5 * rng.normal(size=n_rows))
    income = np.exp(10 + 0.5 * wealth + 0.3 * rng.normal(size=n_rows))
    score = (
        -1.2 * patience
        + 0.6 * (plan == "basic")
        - 0.5 * np.log1p(tenure / 365)
        + 0.6 * branch_effect
        + 0.5 * city_effect
        + 0.4 * occupation_effect
        + 0.3 * rng.normal(size=n_rows)
    )
    left = score > np.quantile(score, 0.8)
    silent = rng.random(n_rows) < np.where(left, 0.35, 0.1)  # who leaves says less
    table = pd.DataFrame(
        {
            "Unnamed: 0": np.arange(n_rows),
            "customer_id": [f"C{number:07d}" for number in rng.permutation(n_rows)],
            "joined": joined.date,
            "last_seen": seen,
            "plan": plan,
            "branch": branch,
            "city": city,
            "occupation": np.where(rng.random(n_rows) < 0.08, None, occupation),
            "newsletter": rng.random(n_rows) < 1 / (1 + np.exp(-patience)),
            "app": rng.random(n_rows) < 0.6,
            "monthly_spend": np.round(spend, 2),
            "income": np.where(silent, np.nan, np.round(income, -2)),
            "tickets": tickets,
            "age": np.where(rng.random(n_rows) < 0.03, np.nan, rng.integers(18, 90, n_rows)),
            "currency": "EUR",
            "comment": _comments(rng, patience),
        }
    )
    return table, left


def _categories(
    rng: np.random.Generator, n_rows: int, count: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Categories of which a few are frequent, and what each one adds to the score."""
    shares = 1 / np.arange(1, count + 1) ** 0.8
    chosen = rng.choice(count, n_rows, p=shares / shares.sum())
    # Frequent ones are a little different from rare ones, as large towns are from villages.
    effect = rng.normal(size=count) - 0.3 * np.log(shares / shares.mean())
    names = np.array([f"{name} {number}" for number in rng.permutation(count)], dtype=object)
    return names[chosen], effect[chosen] / effect.std()


def _comments(rng: np.random.Generator, patience: np.ndarray) -> list[str | None]:
    """A few words each; half of the customers wrote none."""
    comments: list[str | None] = []
    bad = 1 / (1 + np.exp(2 * patience))
    for share, wrote in zip(bad, rng.random(len(patience)) < 0.5, strict=True):
        words = list(rng.choice(PLAIN.split(), 6))
        mood = (BAD if rng.random() < share else GOOD).split()
        words += list(rng.choice(mood, 2))
        comments.append(" ".join(words) if wrote else None)
    return comments


def main() -> None:
    """Write the table and the truth."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", default=Path("customers.csv"))
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    table, left = make_customers(asked.rows, asked.seed)
    known = np.random.default_rng(asked.seed + 1).choice(asked.rows, asked.labels, replace=False)
    table["left"] = None
    table.loc[known, "left"] = np.where(left[known], "yes", "no")
    if asked.file.suffix == ".parquet":
        table.to_parquet(asked.file, index=False)
    else:
        table.to_csv(asked.file, index=False)
    np.save(asked.file.with_suffix(".truth.npy"), left)
    print(f"{asked.file}: {asked.rows:,} customers, {asked.labels:,} labels")


if __name__ == "__main__":
    main()
