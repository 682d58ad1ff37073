"""How many labels ``suggest`` saves: rounds of suggested labels against random labelling.

Every start has one random label a class. From there, ten rounds of ten suggested labels are taken
in by ``update_labels``, and as many random ones, and more, from the same start. Accuracy is that on
the rows without a label, in percent.

With --from-zero there is no label at the start: 20 typical rows (``suggest_first``), then rounds of
ten suggested ones up to 100, against as many random rows; and 50 and 100 typical rows at once.

Run with:  BIGLP_DATA=folder python benchmarks/suggest.py measure mnist mnist.json [--starts 5]
           [--from-zero]
Then:      python benchmarks/suggest.py plot mnist.json fashion_mnist.json
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_data import SETS, load
from biglp import LowRankLabelPropagation

ROUNDS, BATCH = 10, 10
RANDOM_ROUNDS = 25
FIRST, MOST_FROM_ZERO = 20, 100
FIRST_SEED = 1000
"""Starts that were not looked at while the method was chosen."""
IMAGE = Path(__file__).parents[1] / "docs" / "img" / "suggest"


def scores(model: LowRankLabelPropagation, truth: np.ndarray, known: np.ndarray) -> list[float]:
    """Accuracy and balanced accuracy on the rows without a label."""
    hidden = np.ones(len(truth), dtype=bool)
    hidden[known] = False
    right = (model.transduction_ == truth)[hidden]
    classes = truth[hidden]
    each = [right[classes == code].mean() for code in np.unique(classes)]
    return [100 * float(right.mean()), 100 * float(np.mean(each))]


def curves(rows: np.ndarray, truth: np.ndarray, seed: int, balance: str) -> dict[str, Any]:
    """Scores after every round from one start, suggested and at random."""
    rng = np.random.default_rng(seed)
    start = np.array([rng.choice(np.flatnonzero(truth == code)) for code in np.unique(truth)])
    labels = np.full(len(truth), -1)
    labels[start] = truth[start]
    model = LowRankLabelPropagation(class_balance=balance, random_state=seed, engine="serial")
    model.fit(rows, labels)
    found: dict[str, Any] = {"suggested": [scores(model, truth, start)], "seconds": []}
    known = start
    for _ in range(ROUNDS):
        began = time.perf_counter()
        chosen = model.suggest(BATCH)
        model.update_labels(chosen, truth[chosen])
        found["seconds"].append(time.perf_counter() - began)
        known = np.concatenate([known, chosen])
        found["suggested"].append(scores(model, truth, known))
    model.update_labels(known[len(start) :], np.full(len(known) - len(start), -1))
    others = rng.permutation(np.setdiff1d(np.arange(len(truth)), start))
    found["random"] = [found["suggested"][0]]
    for turn in range(RANDOM_ROUNDS):
        more = others[turn * BATCH : (turn + 1) * BATCH]
        model.update_labels(more, truth[more])
        seen = np.concatenate([start, others[: (turn + 1) * BATCH]])
        found["random"].append(scores(model, truth, seen))
    return found


def labelled_scores(rows: np.ndarray, truth: np.ndarray, chosen: np.ndarray, seed: int) -> Any:
    """Model and scores with the labels of some rows; no model where they have one class only."""
    labels = np.full(len(truth), -1)
    labels[chosen] = truth[chosen]
    if len(np.unique(truth[chosen])) < 2:
        right = (truth == truth[chosen[0]])[labels < 0]
        return None, [100 * float(right.mean()), 100 / (truth.max() + 1)]
    model = LowRankLabelPropagation(random_state=seed, engine="serial").fit(rows, labels)
    return model, scores(model, truth, chosen)


def curves_from_zero(rows: np.ndarray, truth: np.ndarray, seed: int) -> dict[str, Any]:
    """Scores at 20 to 100 labels without any at the start, suggested and at random."""
    rng = np.random.default_rng(seed)
    first = LowRankLabelPropagation(random_state=seed, engine="serial")
    began = time.perf_counter()
    known = first.suggest_first(rows, FIRST)
    found: dict[str, Any] = {"seconds": time.perf_counter() - began}
    found["typical"] = {
        n: labelled_scores(rows, truth, first.suggest_first(rows, n), seed)[1] for n in (50, 100)
    }
    model, reached = labelled_scores(rows, truth, known, seed)
    found["rounds"] = {FIRST: reached}
    while len(known) < MOST_FROM_ZERO:
        if model is None:
            known = first.suggest_first(rows, len(known) + BATCH)
        else:
            known = np.concatenate([known, model.suggest(BATCH)])
        model, reached = labelled_scores(rows, truth, known, seed)
        found["rounds"][len(known)] = reached
    order = rng.permutation(len(truth))
    found["random"] = {n: labelled_scores(rows, truth, order[:n], seed)[1] for n in found["rounds"]}
    return found


def summary_from_zero(found: dict[str, Any]) -> str:
    """One line of the table in docs/accuracy.md."""

    def at(way: str, n: int) -> str:
        every = np.array([run[way][str(n)] for run in found["runs"]])
        return "{:.1f} ({:.1f})".format(*every.mean(axis=0))

    cells = [at("rounds", FIRST), at("random", FIRST), at("typical", 50), at("rounds", 50)]
    cells += [at("random", 50), at("typical", 100), at("rounds", 100), at("random", 100)]
    return f"| {found['name']} | {found['rows']:,} | " + " | ".join(cells) + " |"


def measure_from_zero(
    name: str, out: Path, starts: int, n_rows: int, balance: str, first_seed: int
) -> None:
    """Run all seeds of one data set without labels at the start; the balance is "auto"."""
    rows, truth = load(Path(os.environ["BIGLP_DATA"]), name, n_rows)
    runs = []
    for start in range(starts):
        runs.append(curves_from_zero(rows, truth, first_seed + start))
        out.write_text(json.dumps({"name": name, "rows": len(truth), "runs": runs}))
        print(summary_from_zero(json.loads(out.read_text())), flush=True)


def measure(name: str, out: Path, starts: int, n_rows: int, balance: str, first_seed: int) -> None:
    """Run all starts of one data set."""
    rows, truth = load(Path(os.environ["BIGLP_DATA"]), name, n_rows)
    runs = []
    for start in range(starts):
        runs.append(curves(rows, truth, first_seed + start, balance))
        facts = {"name": name, "rows": len(truth), "classes": int(truth.max()) + 1}
        out.write_text(json.dumps({**facts, "class_balance": balance, "runs": runs}))
        print(summary(json.loads(out.read_text())), flush=True)


def mean(found: dict[str, Any], way: str, score: int = 0) -> np.ndarray:
    """Score after each round, averaged over the starts."""
    return np.array([run[way] for run in found["runs"]])[:, :, score].mean(axis=0)


def labels_needed(found: dict[str, Any]) -> float:
    """Random labels whose mean first reaches that of ten suggested rounds, or inf."""
    reached, curve = mean(found, "suggested")[-1], mean(found, "random")
    there = np.flatnonzero(curve >= reached)
    return float(found["classes"] + BATCH * there[0]) if len(there) else float("inf")


def summary(found: dict[str, Any]) -> str:
    """One line of the table in docs/accuracy.md."""
    first, last = found["classes"], found["classes"] + ROUNDS * BATCH
    twice = min(round((2 * last - first) / BATCH), RANDOM_ROUNDS)
    suggested, drawn = mean(found, "suggested"), mean(found, "random")
    balanced, drawn_balanced = mean(found, "suggested", 1), mean(found, "random", 1)
    needed = labels_needed(found)
    needs = f"{needed:.0f}" if np.isfinite(needed) else f"over {first + RANDOM_ROUNDS * BATCH}"
    seconds = np.mean([run["seconds"] for run in found["runs"]])
    return (
        f"| {found['name']} | {found['rows']:,} | {found['class_balance']} | "
        f"{len(found['runs'])} | {drawn[0]:.1f} | "
        f"{suggested[-1]:.1f} ({balanced[-1]:.1f}) | {drawn[ROUNDS]:.1f} "
        f"({drawn_balanced[ROUNDS]:.1f}) | {drawn[twice]:.1f} ({drawn_balanced[twice]:.1f}) | "
        f"{last} | {needs} | {seconds:.1f} |"
    )


def plot(files: list[Path]) -> None:
    """Draw accuracy against labels for each data set, and print the table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sets = [json.loads(file.read_text()) for file in files]
    print("\n".join(map(summary, sets)))
    shown = [found for found in sets if found["name"].endswith("mnist")]
    figure, panels = pyplot.subplots(1, len(shown), figsize=(4.5 * len(shown), 3.6), squeeze=False)
    for panel, found in zip(panels[0], shown, strict=True):
        for way, colour in (("random", "tab:gray"), ("suggested", "tab:blue")):
            every = np.array([run[way] for run in found["runs"]])[:, :, 0]
            labels = found["classes"] + BATCH * np.arange(every.shape[1])
            middle, spread = every.mean(axis=0), every.std(axis=0)
            panel.plot(labels, middle, color=colour, label=way, marker=".")
            panel.fill_between(labels, middle - spread, middle + spread, color=colour, alpha=0.15)
        reached = mean(found, "suggested")[-1]
        panel.axhline(reached, color="tab:blue", linewidth=0.7, linestyle="--")
        panel.set_title(f"{found['name']}, {found['rows']:,} rows, {found['class_balance']}")
        panel.set_xlabel("labels")
        panel.set_ylabel("accuracy on unlabelled rows, %")
        panel.legend()
    figure.tight_layout()
    IMAGE.parent.mkdir(exist_ok=True)
    for ending in (".svg", ".png"):
        figure.savefig(IMAGE.with_suffix(ending), dpi=110)


def main() -> None:
    """Measure a data set, or plot what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("set", choices=list(SETS))
    one.add_argument("out", type=Path)
    one.add_argument("--starts", type=int, default=5)
    one.add_argument("--rows", type=int, default=20_000)
    one.add_argument("--first-seed", type=int, default=FIRST_SEED)
    one.add_argument("--class-balance", default="auto")
    one.add_argument("--from-zero", action="store_true")
    several = commands.add_parser("plot")
    several.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.command == "plot":
        plot(options.files)
    else:
        given = options.starts, options.rows, options.class_balance, options.first_seed
        run = measure_from_zero if options.from_zero else measure
        run(options.set, options.out, *given)


if __name__ == "__main__":
    main()
