"""Fits in this tree and in another one, compared bit for bit.

A change that moves code and changes no number shows it here. Each case is a fit through a public
interface, the estimators or the command line, of every factor, method, format and engine, with few
and many labels, weights, distributions, regression, compiled loops on and off. Labels and
probabilities of all rows, and of new rows, must be the same in both trees, to the last bit.

Run with:  python benchmarks/same_bits.py --against REV [--only WORD,...] [--list]

``--against`` takes a commit of this repository, or a folder that holds another checkout.
Cases that are not equal are listed with the number of labels and the largest probability that
differ; the exit code is 1 then, and also where a case fails in either tree.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Answers = dict[str, np.ndarray]
ROOT = Path(__file__).parents[1]
N_ROWS, N_NEW, N_FEATURES, N_CLASSES = 2500, 400, 9, 3
MANY_ROWS = 70_000
"""Rows from which the compiled search and the compiled trees are asked."""
CASES: dict[str, Callable[[], Answers]] = {}


def add(name: str, case: Callable[..., Answers], *args: Any, **options: Any) -> None:
    """Put a case into the list."""
    assert name not in CASES, name
    CASES[name] = lambda: case(*args, **options)


# Rows and labels --------------------------------------------------------------------------------


def problem(
    n_rows: int = N_ROWS, a_class: int = 6, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels (-1 where unknown), truth and new rows.  (n, m), (n,), (n,), (n', m)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, N_CLASSES, n_rows + N_NEW)
    bent = rng.normal(size=(n_rows + N_NEW, N_FEATURES)) * (1 + truth[:, None] / 3)
    rows = (bent + 1.5 * np.eye(N_CLASSES, N_FEATURES)[truth] * 2).astype(np.float32)
    labels = np.full(n_rows, -1)
    for code in range(N_CLASSES):
        labels[np.flatnonzero(truth[:n_rows] == code)[:a_class]] = code
    return rows[:n_rows], labels, truth[:n_rows], rows[n_rows:]


def sparse_words(n_rows: int = 1500) -> tuple[Any, np.ndarray]:
    """Counts of words in CSR, and labels."""
    from scipy import sparse

    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, n_rows)
    rates = rng.gamma(0.3, 0.4, size=(3, 400))
    labels = np.where(np.arange(n_rows) < 40, truth, -1)
    return sparse.csr_matrix(rng.poisson(rates[truth]).astype(np.float32)), labels


def mixed_table(n_rows: int = N_ROWS) -> tuple[Any, np.ndarray]:
    """A table of numbers, categories, dates, truth values, texts and holes, and its labels."""
    import pyarrow as pa

    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, n_rows)
    day = np.datetime64("2024-01-01") + (rng.integers(0, 300, n_rows) + 90 * truth)
    words = np.array(["red", "green", "blue", "deep", "light", "sea", "sky", "grass"])
    texts = [" ".join(words[(rng.integers(0, 4, 5) + t) % 8]) for t in truth]
    amount = np.exp(rng.normal(size=n_rows) + truth)
    table = pa.table(
        {
            "id": [f"r{i:06d}" for i in range(n_rows)],
            "amount": pa.array(amount, mask=rng.random(n_rows) < 0.1),
            "count": rng.poisson(2 + truth),
            "city": np.array(["Rome", "Oslo", "Bonn", "Nice"])[
                (truth + rng.integers(0, 2, n_rows)) % 4
            ],
            "street": [f"street {v}" for v in rng.integers(0, 150, n_rows)],
            "day": pa.array(day),
            "member": rng.random(n_rows) < 0.3 + 0.2 * truth,
            "remark": texts,
            "y": pa.array([str(t) if i < 60 else None for i, t in enumerate(truth)]),
        }
    )
    return table, truth


# Estimators -------------------------------------------------------------------------------------


def answers_of(model: Any, new: Any = None) -> Answers:
    """What a fitted classifier says of its rows and of new ones."""
    out = {
        "labels": np.asarray(model.transduction_),
        "probabilities": np.asarray(model.label_distributions_),
    }
    if new is not None:
        out["new"] = np.asarray(model.predict_proba(new))
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/m.biglp")
            out["loaded"] = np.asarray(type(model).load(f"{folder}/m.biglp").predict_proba(new))
    return out


def classifier(
    rows: tuple[int, int] = (N_ROWS, 6), y: str = "labels", dtype: str = "float32", **options: Any
) -> Answers:
    """Fit an array; ``y`` says how the labels come."""
    import biglp

    X, labels, _, new = problem(*rows)
    X, new, weight = X.astype(dtype), new.astype(dtype), None
    target: Any = labels
    if y == "names":
        target = np.array(["", "ant", "bee", "cat"], dtype=object)[labels + 1]
    elif y == "distributions":
        target = np.where(labels[:, None] >= 0, np.eye(N_CLASSES)[labels] * 0.8 + 0.2 / 3, 0)
    elif y == "weights":
        weight = np.linspace(0.2, 3, len(labels))
    if options.pop("order", "C") == "F":
        X = np.asfortranarray(X)
    model = biglp.LowRankLabelPropagation(**options).fit(X, target, weight)
    return answers_of(model, new)


def paper(method: str) -> Answers:
    """The paper's own settings."""
    import biglp

    X, labels, _, new = problem()
    return answers_of(biglp.LowRankLabelPropagation.paper(method, k=40).fit(X, labels), new)


def given_landmarks() -> Answers:
    """Landmarks that the user gives."""
    import biglp

    X, labels, _, new = problem()
    model = biglp.LowRankLabelPropagation(factor="nystrom", landmarks=X[::50], n_landmarks=50)
    return answers_of(model.fit(X, labels), new)


def words() -> Answers:
    """Sparse rows."""
    import biglp

    X, labels = sparse_words()
    return answers_of(biglp.LowRankLabelPropagation().fit(X, labels), X[:200])


def own_graph(dense: bool) -> Answers:
    """A graph of the user's own."""
    from sklearn.neighbors import kneighbors_graph

    import biglp

    X, labels, _, _ = problem(900)
    graph = kneighbors_graph(X, 8)
    graph = graph.toarray() if dense else graph.tocsr()
    model = biglp.LowRankLabelPropagation(factor="precomputed").fit(graph, labels)
    return answers_of(model, graph[:50])


def regression(**options: Any) -> Answers:
    """Targets instead of classes."""
    import biglp

    X, labels, truth, new = problem()
    target = np.where(labels >= 0, truth + 0.1 * X[:, 0], np.nan)
    if options.pop("targets", 1) == 2:
        target = np.column_stack([target, 2 - target])
    model = biglp.LowRankLabelPropagationRegressor(**options).fit(X, target)
    return {"values": np.asarray(model.transduction_), "new": np.asarray(model.predict(new))}


def frame() -> Answers:
    """A data frame of mixed columns."""
    import biglp

    table, _ = mixed_table()
    data = table.drop_columns(["y", "id"]).to_pandas()
    y = np.array([v.as_py() or "" for v in table["y"]], dtype=object)
    model = biglp.LowRankLabelPropagation(text=["remark"]).fit(data, y)
    return answers_of(model, data.iloc[:300])


def later_steps() -> Answers:
    """Suggestions, doubtful labels and later labels."""
    import biglp

    X, labels, truth, new = problem()
    model = biglp.LowRankLabelPropagation().fit(X, labels)
    out = {"suggested": np.asarray(model.suggest(20))}
    more = labels.copy()
    more[out["suggested"]] = truth[out["suggested"]]
    more[:4] = (truth[:4] + 1) % 3
    changed = np.flatnonzero(more != labels)
    model.update_labels(changed, more[changed])
    out["doubtful"] = np.asarray(model.doubtful_labels().rows)
    return {**out, **answers_of(model, new)}


def dask_rows() -> Answers:
    """Rows and labels on two Dask workers."""
    from dask.distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        return classifier(engine="dask", memory="1GB")


# The command line -------------------------------------------------------------------------------


def write_rows(kind: str) -> list[str]:
    """Write rows and labels in a format into this folder; the arguments that name them."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet as pq

    X, labels, _, new = problem()
    numbers = pa.table(
        {f"x{i}": X[:, i] for i in range(N_FEATURES)}
        | {"y": pa.array([None if v < 0 else f"c{v}" for v in labels])}
    )
    new_numbers = pa.table({f"x{i}": new[:, i] for i in range(N_FEATURES)})
    mixed, _ = mixed_table()
    np.save("labels.npy", labels)
    named = ["--label-column", "y"]
    mixed_options = [*named, "--id-column", "id", "--text", "remark"]
    if kind in ("npy", "float16", "budget"):
        half = kind == "float16"
        np.save("rows.npy", X.astype(np.float16) if half else X)
        np.save("new.npy", new)
        return ["rows.npy", "--labels", "labels.npy"]
    if kind == "shards":
        Path("rows").mkdir()
        for part in range(3):
            np.save(f"rows/{part}.npy", X[part * 800 : (part + 1) * 800 if part < 2 else None])
        np.save("new.npy", new)
        return ["rows", "--labels", "labels.npy"]
    if kind == "npz":
        np.savez("rows.npz", X=X, y=labels)
        return ["rows.npz", "--labels", "labels.npy"]
    if kind == "libsvm":
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(X, labels, "rows.libsvm", zero_based=False)
        return ["rows.libsvm"]
    if kind == "csr":
        from scipy import sparse

        matrix, found = sparse_words()
        sparse.save_npz("rows.npz", matrix)
        np.save("labels.npy", found)
        return ["rows.npz", "--labels", "labels.npy"]
    if kind == "hdf5":
        import h5py

        with h5py.File("rows.h5", "w") as file:
            file["rows"] = X
        return ["rows.h5::rows", "--labels", "labels.npy"]
    if kind == "zarr":
        import zarr

        zarr.create_array("rows.zarr", data=X, chunks=(700, N_FEATURES))
        return ["rows.zarr", "--labels", "labels.npy"]
    if kind == "embedding":
        pq.write_table(pa.table({"e": list(X), "y": numbers["y"]}), "rows.parquet")
        return ["rows.parquet", *named]
    if kind in ("parquet", "map"):
        pq.write_table(numbers, "rows.parquet", row_group_size=700)
        pq.write_table(new_numbers, "new.parquet")
        return ["rows.parquet", *named]
    if kind == "folder":
        Path("rows").mkdir()
        for part, start in enumerate(range(0, N_ROWS, 1000)):
            pq.write_table(numbers.slice(start, 1000), f"rows/part-{part}.parquet")
        return ["rows", *named]
    if kind == "mixed":
        pq.write_table(mixed, "rows.parquet")
        pq.write_table(mixed.drop_columns(["y"]).slice(0, 500), "new.parquet")
        return ["rows.parquet", *mixed_options]
    if kind == "csv":
        pyarrow.csv.write_csv(mixed, "rows.csv")
        pyarrow.csv.write_csv(mixed.drop_columns(["y"]).slice(0, 500), "new.csv")
        return ["rows.csv", *mixed_options]
    if kind == "jsonl":
        mixed.to_pandas().to_json("rows.jsonl", orient="records", lines=True, date_format="iso")
        return ["rows.jsonl", *mixed_options]
    if kind == "arrow":
        pyarrow.feather.write_feather(mixed, "rows.arrow")
        return ["rows.arrow", *mixed_options]
    if kind == "ids":
        pq.write_table(mixed.drop_columns(["y"]), "rows.parquet")
        lines = [f"r{i:06d},{v.as_py()}" for i, v in enumerate(mixed["y"]) if v.as_py()]
        Path("labels.csv").write_text("\n".join(["id,label", *lines[::-1]]) + "\n")
        return ["rows.parquet", "--id-column", "id", "--labels", "labels.csv"]
    if kind == "simulated":
        return ["sim:4000x6"]
    raise AssertionError(kind)


def table_of(path: Path) -> Answers:
    """The columns of a file of answers."""
    import pyarrow.parquet as pq

    if path.suffix == ".npy":
        return {path.stem: np.load(path)}
    table = pq.read_table(path)
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return {f"{path.stem}.{name}": values for name, values in columns.items()}


def command(kind: str, *options: str, ranks: int = 0) -> Answers:
    """Run ``biglp fit``, and ``predict`` where the format has new rows, in a fresh folder."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            rows = write_rows(kind)
            program = [sys.executable, "-m", "biglp"]
            if ranks:
                launcher = Path(sys.executable).with_name("mpiexec")
                program = [str(launcher), "-n", str(ranks), sys.executable, "-m", "biglp"]
            chosen = [] if "--top" in options else ["--probabilities"]
            more = [*chosen, *options, "-o", "out", "--quiet"]
            called([*program, "fit", *rows, *more])
            out: Answers = {}
            for path in sorted(Path("out").glob("*.npy")) + sorted(Path("out").glob("*.parquet")):
                out |= table_of(path)
            for new in Path().glob("new.*"):
                # The last suffix of the result chooses its format.
                target = "new-labels.npy" if new.suffix == ".npy" else "new-labels.parquet"
                called([sys.executable, "-m", "biglp", "predict", "out/model.biglp", str(new),
                        "--probabilities", "-o", target, "--quiet"])  # fmt: skip
                for path in Path().glob("new-labels*"):
                    out |= table_of(path)
            return out
        finally:
            os.chdir(here)


def called(words: list[str]) -> None:
    """Run a command; its error where it fails."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[2:])}: exit {done.returncode}\n{done.stderr[-2000:]}")


# The list ---------------------------------------------------------------------------------------

add("default", classifier)
add("default, names as labels", classifier, y="names")
add("default, 1 label a class", classifier, rows=(N_ROWS, 1))
add("default, 2 labels a class", classifier, rows=(N_ROWS, 2))
add("default, 20 labels a class", classifier, rows=(N_ROWS, 20))
add("default, 300 labels a class", classifier, rows=(N_ROWS, 300))
add("default, weights", classifier, y="weights")
add("default, distributions", classifier, y="distributions")
add("default, float64, Fortran order", classifier, dtype="float64", order="F")
add("default, float16", classifier, dtype="float16")
add("default, hard clamp", classifier, clamp="hard")
add("default, serial", classifier, engine="serial")
add("default, little memory", classifier, rows=(20_000, 6), memory="420MB")
add("default, fast", classifier, effort="fast")
add("default, best", classifier, effort="best")
add("default, other seed", classifier, random_state=7)
add("default, many rows", classifier, rows=(MANY_ROWS, 20))
add("default, many rows and labels", classifier, rows=(MANY_ROWS, 1500))
add("default, dask", dask_rows)
for factor in ("anchors", "nystrom", "glnp", "glnp-mu", "linear"):
    add(f"{factor}", classifier, factor=factor, n_landmarks=30)
    if factor != "anchors":
        add(f"{factor}, poisson", classifier, factor=factor, n_landmarks=30, filter="poisson")
add("anchors, poisson", classifier, factor="anchors", filter="poisson")
add("anchors, spreading", classifier, filter="spreading")
add("anchors, iterative", classifier, filter="spreading", alpha=0.9, solver="iterative")
add("nystrom, many rows", classifier, rows=(MANY_ROWS, 20), factor="nystrom", n_landmarks=40)
add("nystrom, random", classifier, factor="nystrom", landmarks="random", n_landmarks=60)
add("nystrom, kmeans-full", classifier, factor="nystrom", landmarks="kmeans-full", n_landmarks=25)
add("nystrom, given landmarks", given_landmarks)
for balance in ("mass", "share", "centre", "none"):
    add(f"balance {balance}", classifier, filter="spreading", class_balance=balance)
for scaling in ("none", "standard", "minmax", "log", "unit", "table"):
    add(f"scaling {scaling}", classifier, scaling=scaling)
add("projection", classifier, projection=4)
for method in ("nystrom-random", "nystrom-kmeans", "glnp-mu", "glnp-apgd", "linear"):
    add(f"paper {method}", paper, method)
add("words in CSR", words)
add("own graph, sparse", own_graph, False)
add("own graph, dense", own_graph, True)
add("regression", regression)
add("regression, two targets", regression, targets=2)
add("regression, nystrom", regression, factor="nystrom", n_landmarks=30)
add("data frame", frame)
add("suggestions and later labels", later_steps)
for kind in (
    "npy", "float16", "shards", "npz", "csr", "libsvm", "hdf5", "zarr", "parquet", "folder",
    "embedding", "mixed", "csv", "jsonl", "arrow", "ids", "simulated",
):  # fmt: skip
    add(f"file {kind}", command, kind)
add("file map and candidates", command, "map", "--map", "--confidence", "--top", "2")
add("file mixed, one-hot", command, "mixed", "--categorical", "onehot", "--missing", "mean")
add("file little memory", command, "budget", "--memory", "300MB", "--threads", "1")
add("file glnp", command, "npy", "--factor", "glnp", "-k", "20")
add("mpi, 2 ranks, array file", command, "npy", "--engine", "mpi", ranks=2)
add("mpi, 2 ranks, mixed table", command, "mixed", "--engine", "mpi", ranks=2)
add("mpi, 2 ranks, glnp", command, "npy", "--engine", "mpi", "--factor", "glnp", ranks=2)
add("mpi, 3 ranks, nystrom", command, "npy", "--engine", "mpi", "--factor", "nystrom", ranks=3)
add("dask, mixed table", command, "mixed", "--engine", "dask", "--memory", "2GB")

NOT_COMPILED = ("default, many rows", "default, many rows and labels", "nystrom, many rows")
"""Cases that are run without compiled loops as well."""


def run_cases(names: list[str], target: Path) -> None:
    """Run cases and write their answers, one file each, or the error."""
    import biglp

    print(f"{Path(biglp.__file__).parent}", flush=True)
    warnings.simplefilter("ignore")
    for number, name in enumerate(names):
        began = time.perf_counter()
        try:
            np.savez(target / f"{number}.npz", **CASES[name]())
        except Exception:
            (target / f"{number}.txt").write_text(f"{name}\n{traceback.format_exc()}")
        print(f"  {name}: {time.perf_counter() - began:.1f} s", flush=True)


def run_tree(tree: Path, names: list[str], target: Path, compiled: bool) -> None:
    """Run cases with the sources of a tree in a process of its own."""
    target.mkdir()
    # Without compiled loops the compiler cannot be imported, in either tree.
    hidden = "" if compiled else "import sys; sys.modules['llvmlite'] = None; "
    program = f"{hidden}import same_bits; same_bits.main()"
    subprocess.run(
        [sys.executable, "-c", program, "--write", str(target), "--names", "|".join(names)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(ROOT / "benchmarks")]),
            **({} if compiled else {"BIGLP_COMPILED": "off"}),
        },
        check=True,
        cwd=target,
    )


def read(folder: Path, number: int) -> Answers | str:
    """Answers of a case, or its error."""
    if (folder / f"{number}.txt").exists():
        return (folder / f"{number}.txt").read_text()
    with np.load(folder / f"{number}.npz", allow_pickle=True) as stored:
        return dict(stored)


def difference(old: Answers | str, new: Answers | str) -> str:
    """What differs; empty where all bits are the same."""
    if isinstance(old, str) or isinstance(new, str):
        failed = [
            f"{tree}: {text}"
            for tree, text in (("old", old), ("new", new))
            if isinstance(text, str)
        ]
        return "failed: " + "\n".join(failed)
    if sorted(old) != sorted(new):
        return f"other outputs: {sorted(old)} and {sorted(new)}"
    said = []
    for name, before in old.items():
        after = new[name]
        if before.shape != after.shape or before.dtype != after.dtype:
            said.append(f"{name}: {before.dtype}{before.shape} and {after.dtype}{after.shape}")
        elif before.dtype == object or before.dtype.kind in "US":
            if before.tolist() != after.tolist():
                said.append(f"{name}: {np.sum(before != after)} of {before.size} differ")
        elif before.tobytes() != after.tobytes():
            gap = np.abs(before.astype(float) - after.astype(float)).max()
            said.append(
                f"{name}: {np.sum(before != after)} of {before.size} differ, by {gap:.3g} at most"
            )
    return "; ".join(said)


def main() -> None:
    """Run all cases in both trees and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--against", help="a commit, or a folder with another checkout")
    parser.add_argument("--only", default="", help="cases whose names hold one of these words")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--names", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        return run_cases(options.names.split("|"), options.write)
    words = [word for word in options.only.split(",") if word]
    names = [name for name in CASES if not words or any(word in name for word in words)]
    bare = [name for name in NOT_COMPILED if name in names]
    if options.list or not options.against:
        print(
            "\n".join(names),
            f"\n{len(names) + len(bare)} fits ({len(bare)} without compiled loops)",
        )
        return None
    with tempfile.TemporaryDirectory(prefix="biglp-bits-") as folder:
        place = Path(folder)
        other = Path(options.against)
        if not other.is_dir():
            other = place / "old"
            git = ["git", "-C", str(ROOT), "worktree"]
            subprocess.run(
                [*git, "add", "--quiet", "--detach", str(other), options.against], check=True
            )
        different = 0
        try:
            for root in (other, ROOT):
                # Else NumPy's numbers of one tree are compared with the compiled ones of the other.
                if (root / "hatch_build.py").exists():
                    subprocess.run([sys.executable, "hatch_build.py"], cwd=root, check=True)
            for compiled, chosen in ((True, names), (False, bare)):
                for tree, root in (("before", other), ("after", ROOT)):
                    if chosen:
                        run_tree(root.resolve(), chosen, place / f"{tree}-{compiled}", compiled)
                for number, name in enumerate(chosen):
                    both = (
                        read(place / f"{tree}-{compiled}", number) for tree in ("before", "after")
                    )
                    if said := difference(*both):
                        different += 1
                        print(f"DIFFERENT  {name}{'' if compiled else ', not compiled'}: {said}")
        finally:
            if other == place / "old":
                subprocess.run([*git, "remove", "--force", str(other)], check=True)
                shutil.rmtree(other, ignore_errors=True)
    total = len(names) + len(bare)
    print(f"{total - different} of {total} fits have the same bits")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
