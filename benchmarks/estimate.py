"""How good is the estimate of accuracy: its error, and how often its interval holds the truth.

The data sets of the accuracy table, at most 6,000 rows of each; labels drawn at random, by class,
and suggested in rounds of 20. Each fit is a line of a JSON file: what was estimated, what is true,
and what the constants of biglp/_learn/accuracy.py can be found again from.

Run with:  BIGLP_DATA=folder python benchmarks/estimate.py measure out.jsonl [--draws 2] [--sets …]
Then:      python benchmarks/estimate.py table out.jsonl      the table of docs/accuracy.md
           python benchmarks/estimate.py constants out.jsonl  GAP and SLOW, each set left out once
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from accuracy_data import SETS, load
from biglp import LowRankLabelPropagation
from biglp._learn import accuracy as estimate
from biglp._learn.committee import method as appraisal

ROWS = 6000
DRAWN = [("random", 50), ("random", 100), ("random", 500), ("by class", 5), ("by class", 20)]
ROUNDS, BATCH, START = 5, 20, 20
FEWEST = 45
"""Held-out labels from which on a fit counts as one with "50 labels and more"."""
GRID = np.linspace(-1.5, 1.5, 31)
asked: list[Any] = []


def remembered(held_out: Any, sample: np.ndarray, n_labelled: int) -> Any:
    """Estimate as always, and keep what it was made from."""
    known = np.isfinite(held_out.shares).all(axis=1) & (held_out.truth.sum(axis=1) > 0)
    held_out = estimate.HeldOutLabels(held_out.shares[known], held_out.truth[known])
    asked[:] = [held_out, np.asarray(sample, dtype=np.float64)]
    return estimate.estimate_accuracy(held_out, sample, n_labelled)


def line(model: LowRankLabelPropagation, truth: np.ndarray, known: np.ndarray) -> dict[str, Any]:
    """What is estimated after a fit, and what is true."""
    hidden = np.ones(len(truth), dtype=bool)
    hidden[known] = False
    right = (model.transduction_ == truth)[hidden]
    said, report = model.report_["estimated_accuracy"], model.report_
    found = {"labels": len(known), "accuracy": float(right.mean())}
    found |= {"unseen": report["unseen_share"], "held out": report["held_out_accuracy"]}
    found["stated"] = float(model.label_distributions_[hidden].max(axis=1).mean())
    if said is not None:
        held_out, sample = asked
        gap, log_b = estimate.sharpness(held_out, sample)
        slow = estimate.SLOW + len(held_out.shares)
        found |= {"estimate": said["accuracy"], "interval": said["interval"]}
        found |= {"known": len(held_out.shares), "gap": gap}
        found["log b_h"] = (log_b - estimate.GAP * gap) * slow / len(held_out.shares)
        logs = np.log(np.maximum(sample, estimate.TINY))
        curve = [softmax(np.exp(b) * logs, axis=1).max(axis=1).mean() for b in GRID]
        found["curve"] = [round(float(value), 5) for value in curve]
        classes = [code for code in model.classes_ if (truth[hidden] == code).sum() >= 30]
        each = [right[truth[hidden] == code].mean() for code in classes]
        said_each = [said["recall"][str(code)] for code in classes]
        found["recall error"] = float(np.mean(np.abs(np.subtract(said_each, each))))
    return found


def measure(name: str, rows: np.ndarray, truth: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """All ways of labelling, for one draw."""
    rng, lines = np.random.default_rng(100 + seed), []

    def fit(chosen: np.ndarray) -> LowRankLabelPropagation:
        labels = np.full(len(truth), -1)
        labels[chosen] = truth[chosen]
        return LowRankLabelPropagation(random_state=seed, engine="serial").fit(rows, labels)

    def at_random(n: int) -> np.ndarray:
        chosen = rng.choice(len(truth), n, replace=False)
        return chosen if len(np.unique(truth[chosen])) > 1 else at_random(n)

    def by_class(n: int) -> np.ndarray:
        groups = [np.flatnonzero(truth == code) for code in range(truth.max() + 1)]
        return np.concatenate([rng.choice(g, min(n, len(g) // 2), replace=False) for g in groups])

    for way, n in DRAWN:
        chosen = at_random(n) if way == "random" else by_class(n)
        lines.append({"way": way, "n": n, **line(fit(chosen), truth, chosen)})
    for start in (at_random(START), by_class(1)):
        model, chosen = fit(start), start
        for number in range(ROUNDS):
            more = model.suggest(BATCH)
            model.update_labels(more, truth[more])
            chosen = np.concatenate([chosen, more])
            n = BATCH * (number + 1)
            lines.append({"way": "suggested", "n": n, **line(model, truth, chosen)})
    return [{"data": name, "draw": seed, **each} for each in lines]


def table(lines: list[dict[str, Any]]) -> None:
    """Print error and coverage by way of labelling and by data set."""
    lines = [each for each in lines if each.get("known", 0) >= FEWEST]
    heads = "probability off by | held-out off by | estimate off by | width | holds | unseen"
    print(f"| labels | fits | {heads} |\n{8 * '|---'}|")
    groups = {f"{way}, {n}": (way, n) for way, n in DRAWN} | {"suggested": ("suggested", None)}
    chosen = {
        label: [e for e in lines if e["way"] == way and n in (None, e["n"])]
        for label, (way, n) in groups.items()
    }
    chosen |= {name: [e for e in lines if e["data"] == name] for name in SETS}
    for label, part in [(key, part) for key, part in {**chosen, "all": lines}.items() if part]:
        true = np.array([each["accuracy"] for each in part])
        said = np.array([each["estimate"] for each in part])
        low, high = np.array([each["interval"] for each in part]).T
        others = [np.abs([e[key] for e in part] - true).mean() for key in ("stated", "held out")]
        errors = [100 * value for value in (*others, np.abs(said - true).mean())]
        inside = 100 * ((low <= true) & (true <= high)).mean()
        unseen = max(each["unseen"] for each in part)
        figures = " | ".join(f"{value:.1f}" for value in errors)
        print(
            f"| {label} | {len(part)} | {figures} | {100 * (high - low).mean():.0f} | "
            f"{inside:.0f} % | {unseen:.2f} |"
        )


def constants(lines: list[dict[str, Any]]) -> None:
    """Find GAP and SLOW, each data set left out once."""
    lines = [each for each in lines if each.get("known", 0) >= START]
    names = np.array([each["data"] for each in lines])
    known, gap, log_b, true = (
        np.array([each[key] for each in lines]) for key in ("known", "gap", "log b_h", "accuracy")
    )
    curves = np.array([each["curve"] for each in lines])
    weights = 1.0 / np.array([(names == name).sum() for name in names])

    def errors(unknown: np.ndarray, part: np.ndarray) -> np.ndarray:
        wanted = known / (known + np.exp(unknown[1])) * log_b + unknown[0] * gap
        said = [np.interp(wanted[i], GRID, curves[i]) for i in np.flatnonzero(part)]
        return 100 * np.abs(said - true[part])

    def best(part: np.ndarray) -> np.ndarray:
        loss = lambda unknown: np.average(errors(unknown, part), weights=weights[part])  # noqa: E731
        return np.asarray(minimize(loss, [0.1, np.log(100.0)], method="Nelder-Mead").x)

    left = {name: best(names != name) for name in np.unique(names)}
    apart = np.concatenate([errors(found, names == name) for name, found in left.items()])
    order = np.concatenate([np.flatnonzero(names == name) for name in left])
    for name, found in [*left.items(), ("nothing", best(names != ""))]:
        print(f"without {name}: GAP {found[0]:.3f}, SLOW {np.exp(found[1]):.0f}")
    print(f"error where the set was left out: {apart[known[order] >= FEWEST].mean():.2f} points")


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=["measure", "table", "constants"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    if options.command != "measure":
        lines = [json.loads(each) for each in options.file.read_text().splitlines()]
        (table if options.command == "table" else constants)(lines)
        return
    warnings.simplefilter("ignore")
    appraisal.estimate_accuracy = remembered
    for name in options.sets.split(","):
        rows, truth = load(Path(os.environ["BIGLP_DATA"]), name, ROWS)
        for seed in range(options.draws):
            with options.file.open("a") as file:
                file.writelines(json.dumps(e) + "\n" for e in measure(name, rows, truth, seed))
            print(f"{name} {seed}: done", flush=True)


if __name__ == "__main__":
    main()
