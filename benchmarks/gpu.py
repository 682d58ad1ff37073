"""Time fits on one card beside one read of the rows and beside plain torch, in the same run.

Rows are made on the card. Every case is run once to warm up (compilation and buffers, told apart)
and then timed; the median counts. A case that fails is told, and the others go on.

Run with:  python benchmarks/gpu.py [--small] [--only nystrom] [--json times.json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from biglp import LowRankLabelPropagation
from biglp._core.errors import BigLPWarning

CLASSES, LABELS = 4, 100
PIECE = 1 << 22
REPEAT = 5
SIGMA = 10.0
PLAIN = {"scaling": "none", "alpha": 0.99, "class_balance": "none"}
"""Nothing is left to be chosen by leave-one-out."""


@dataclass
class Case:
    """One line of the table; times in milliseconds."""

    name: str
    target: str
    first: float = float("nan")
    fit: float = float("nan")
    read: float = float("nan")
    torch: float = float("nan")
    note: str = ""


def timed(action: Callable[[], Any], repeat: int = REPEAT) -> float:
    """Median milliseconds of something that the card has finished."""
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        began = time.perf_counter()
        action()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def made(n_rows: int, n_features: int, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    """Rows around four centres on the card, and 100 labels among them, -1 elsewhere."""
    torch.manual_seed(0)
    centres = 0.5 * torch.randn(CLASSES, n_features, device="cuda")
    rows = torch.empty((n_rows, n_features), dtype=dtype, device="cuda")
    truth = torch.arange(n_rows, device="cuda", dtype=torch.int64) % CLASSES
    for start in range(0, n_rows, PIECE):
        codes = truth[start : start + PIECE]
        part = torch.randn((len(codes), n_features), device="cuda") + centres[codes]
        rows[start : start + PIECE] = part.to(dtype)
    labels = torch.full((n_rows,), -1, dtype=torch.int8, device="cuda")
    labels[:LABELS] = truth[:LABELS].to(torch.int8)
    return rows, labels


def read_once(rows: Any) -> None:
    """One read of the rows on the card."""
    for start in range(0, len(rows), 1 << 26):
        rows[start : start + (1 << 26)].amax()


def plain_nystrom(rows: Any, landmarks: Any, gamma: float, labels: Any) -> Any:
    """The same three sweeps in plain torch, features kept: degrees, Gram, labels."""
    norms = (landmarks * landmarks).sum(1)
    kept = torch.empty((len(rows), len(landmarks)), device=rows.device)
    for start in range(0, len(rows), PIECE):
        part = rows[start : start + PIECE].float()
        squared = (part * part).sum(1, keepdim=True) - 2 * part @ landmarks.T + norms
        torch.exp(-gamma * squared, out=kept[start : start + len(part)])
    root = torch.linalg.cholesky(
        torch.exp(-gamma * torch.cdist(landmarks, landmarks) ** 2).inverse()
    )
    weights = root @ (root.T @ kept.sum(0))
    gram = torch.zeros((kept.shape[1],) * 2, dtype=torch.float64, device=rows.device)
    for start in range(0, len(rows), PIECE):
        part = kept[start : start + PIECE]
        part *= (part @ weights).clamp(min=1e-12).rsqrt()[:, None]
        gram += (part.T @ part).double()
    known = (labels >= 0).nonzero()[:, 0]
    given = torch.nn.functional.one_hot(labels[known].long(), CLASSES).float()
    eye = torch.eye(len(gram), dtype=torch.float64, device=rows.device)
    solved = torch.linalg.solve(eye - 0.99 * gram / gram.trace(), (kept[known].T @ given).double())
    found = torch.empty(len(rows), dtype=torch.int8, device=rows.device)
    for start in range(0, len(rows), PIECE):
        found[start : start + PIECE] = (kept[start : start + PIECE] @ solved.float()).argmax(1)
    return found


def model(**settings: Any) -> LowRankLabelPropagation:
    """An estimator on the card."""
    return LowRankLabelPropagation(**{"device": "cuda", "random_state": 0, **settings})


def fitted(case: Case, rows: Any, labels: Any, repeat: int = REPEAT, **settings: Any) -> Any:
    """Time a fit, the first one apart."""
    estimator = model(**settings)
    case.first = timed(lambda: estimator.fit(rows, labels), 1)
    torch.cuda.reset_peak_memory_stats()
    case.fit = timed(lambda: estimator.fit(rows, labels), repeat)
    facts = estimator.report_["device"]
    peak = torch.cuda.max_memory_allocated() / 2**30
    case.note = f"peak {peak:.1f} GiB; " + ", ".join(
        f"{k} {v}" for k, v in facts["seconds"].items()
    )
    return estimator


def landmarks_of(rows: Any, k: int) -> np.ndarray:
    """Rows from all over, as landmarks."""
    return rows[:: len(rows) // k][:k].float().cpu().numpy()


def nystrom(scale: float) -> list[Case]:
    """100 M × 100, landmarks given, resident."""
    rows, labels = made(int(1e8 * scale), 100)
    cases, read = [], timed(lambda: read_once(rows))
    wanted = ((20, "float32", 50), (20, "tf32", 30), (100, "float32", 200))
    for k, precision, most in wanted:
        case = Case(f"Nyström k={k}, {len(rows):,} × 100, {precision}", f"≤ {most} ms", read=read)
        cases.append(case)
        chosen = landmarks_of(rows, k)
        settings = {"landmarks": chosen, "bandwidth": SIGMA, "precision": precision}
        fitted(case, rows, labels, **PLAIN, factor="nystrom", **settings)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        points = torch.as_tensor(chosen, device="cuda")
        case.torch = timed(lambda p=points: plain_nystrom(rows, p, 0.5 / SIGMA**2, labels), 3)
        torch.backends.cuda.matmul.allow_tf32 = False
    return cases


def anchors(scale: float) -> list[Case]:
    """10 M × 100, 1,000 landmarks, three of them a row, resident."""
    rows, labels = made(int(1e7 * scale), 100)
    case = Case(f"anchors k=1,000, s=3, {len(rows):,} × 100", "≤ 150 ms")
    case.read = timed(lambda: read_once(rows))
    chosen = landmarks_of(rows, 1000)
    settings = {"factor": "anchors", "landmarks": chosen, "factor_params": {"n_nearest": 3}}
    fitted(case, rows, labels, **PLAIN, **settings)
    points = torch.as_tensor(chosen, device="cuda")

    def search() -> None:
        for start in range(0, len(rows), 1 << 18):
            torch.cdist(rows[start : start + (1 << 18)], points).topk(3, largest=False)

    case.torch = timed(search, 2)  # the search alone
    return [case]


def half(scale: float) -> list[Case]:
    """10⁹ × 28 in float16."""
    rows, labels = made(int(1e9 * scale), 28, torch.float16)
    case = Case(f"Nyström k=20, {len(rows):,} × 28 float16", "≤ 1,000 ms")
    case.read = timed(lambda: read_once(rows), 3)
    settings = {"factor": "nystrom", "landmarks": landmarks_of(rows, 20), "bandwidth": 5.0}
    fitted(case, rows, labels, 3, **PLAIN, **settings)
    return [case]


def host(scale: float) -> list[Case]:
    """Rows in the computer's memory."""
    cases = []
    for n_rows in (int(1e7 * scale), int(1e8 * scale)):
        rows, labels = made(n_rows, 100)
        chosen, on_host, known = landmarks_of(rows, 20), rows.cpu().numpy(), labels.cpu().numpy()
        del rows, labels
        torch.cuda.empty_cache()
        case = Case(f"from memory, Nyström k=20, {n_rows:,} × 100", "≤ 1.3 pinned copies")
        cases.append(case)
        pinned = torch.empty((min(n_rows, 10_000_000), 100), pin_memory=True)
        copy = timed(lambda p=pinned: p.to("cuda", non_blocking=True), 3)
        case.read = copy * n_rows / len(pinned)
        del pinned
        settings = {"factor": "nystrom", "landmarks": chosen, "bandwidth": SIGMA}
        fitted(case, on_host, known, 3, **PLAIN, **settings)
        case.note = f"{case.fit / case.read:.2f} copies; {case.note}"
    return cases


def default(scale: float) -> list[Case]:
    """No parameter set: resident rows, images, a file."""
    rows, labels = made(int(1e7 * scale), 100)
    case = Case(f"default, {len(rows):,} × 100 resident", "≤ 1,500 ms")
    case.read = timed(partial(read_once, rows))
    fitted(case, rows, labels, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, rows.cpu().numpy())
        known = labels.cpu().numpy()
        del rows, labels
        torch.cuda.empty_cache()
        from_file = Case("default, the same from a file", "≤ 1.3 reads of the file")
        from_file.read = timed(lambda: path.read_bytes(), 2)
        fitted(from_file, str(path), known, 2)
    name, images, truth = digits()
    y = np.where(np.arange(len(truth)) < LABELS, truth, -1)
    shaped = Case(f"default, 70,000 × 784 uint8, {name}", "≤ 300 ms")
    tensor = torch.as_tensor(images, device="cuda")
    shaped.read = timed(lambda: tensor.amax())
    found = fitted(shaped, tensor, y, 5)
    right = (found.transduction_.cpu().numpy() == truth).mean()
    shaped.note = f"{right:.1%} right; {shaped.note}"
    return [case, from_file, shaped]


def digits() -> tuple[str, np.ndarray, np.ndarray]:
    """MNIST where BIGLP_DATA has it, else something of its shape and type."""
    path = Path(os.environ.get("BIGLP_DATA", "")) / "mnist.npz"
    if path.is_file():
        with np.load(path) as found:
            return "MNIST", found["X"], found["y"].astype(np.int64)
    rng, truth = np.random.default_rng(0), np.arange(70_000) % 10
    basis = rng.normal(size=(40, 784))
    images = rng.normal(size=(70_000, 40)) @ basis + 3 * basis[truth]
    return "in the shape of MNIST", np.clip(images * 8 + 100, 0, 255).astype(np.uint8), truth


GROUPS = {"nystrom": nystrom, "anchors": anchors, "half": half, "host": host, "default": default}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--only", choices=GROUPS, action="append")
    parser.add_argument("--json", help="file for the times")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", BigLPWarning)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    cases: list[Case] = []
    for name in chosen.only or GROUPS:
        began = time.perf_counter()
        try:
            found = GROUPS[name](0.01 if chosen.small else 1.0)
        except Exception:
            found = [Case(name, "", note=traceback.format_exc().replace("\n", " | ")[-1500:])]
        torch.cuda.empty_cache()
        cases += found
        for case in found:
            print(
                f"{case.name:52} {case.target:24} first {case.first:9.1f}  fit {case.fit:9.1f}  "
                f"read {case.read:8.1f}  torch {case.torch:8.1f} ms  {case.note}",
                flush=True,
            )
        print(f"  ({name}: {time.perf_counter() - began:.0f} s)", flush=True)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps([asdict(case) for case in cases], indent=1))


if __name__ == "__main__":
    main()
