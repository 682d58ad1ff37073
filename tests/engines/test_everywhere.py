"""Every algorithm on every engine: one test body, and the same bits as one serial process."""

import numpy as np
import pytest

from biglp._engines import SerialEngine, make_engine
from clusters import DASK, MPIEXEC, TESTS, DaskProcesses, run_ranks
from everywhere_program import CASES, fit_all, write_rows

ENGINES = ("threads", "mpi-5", "dask-3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("everywhere")
    write_rows(folder)
    return folder


@pytest.fixture(scope="module")
def serial(folder):
    return fit_all(SerialEngine(), folder)


@pytest.fixture(scope="module", params=ENGINES)
def found(request, folder):
    kind, _, count = request.param.partition("-")
    if kind == "mpi":
        return under_mpiexec(folder, int(count))
    if kind == "dask":
        return on_separate_workers(folder, int(count))
    with make_engine(kind) as engine:
        return fit_all(engine, folder)


def under_mpiexec(folder, n_ranks):
    pytest.importorskip("mpi4py")
    if not MPIEXEC.exists():
        pytest.skip("no mpiexec beside this Python")
    out = folder / f"mpi-{n_ranks}.npz"
    if not out.exists():
        done = run_ranks(n_ranks, "-m", "mpi4py", TESTS / "everywhere_program.py", out)
        assert done.returncode == 0, done.stderr
    with np.load(out) as stored:
        return dict(stored)


def on_separate_workers(folder, n_workers):
    pytest.importorskip("distributed")
    assert DASK.exists()
    place = folder / f"dask-{n_workers}"
    place.mkdir()
    with (
        DaskProcesses(place, n_workers) as processes,
        make_engine(processes.address.replace("tcp://", "dask://")) as engine,
    ):
        engine.client.wait_for_workers(n_workers, timeout=60)
        return fit_all(engine, folder)


@pytest.mark.parametrize("case", CASES)
def test_same_as_serial(case, found, serial):
    names = [name for name in serial if name.startswith(f"{case}/")]
    assert names == [name for name in found if name.startswith(f"{case}/")]
    labels = serial[f"{case}/labels"]
    assert len(np.unique(labels)) == 3
    np.testing.assert_array_equal(found[f"{case}/labels"], labels)
    for name in names:  # landmarks, bandwidth, prototypes and scores: the same bits
        assert found[name].tobytes() == serial[name].tobytes(), name


def test_regression_is_the_same_as_serial(found, serial):
    assert found["regression/values"].tobytes() == serial["regression/values"].tobytes()


def test_bytes_are_those_of_the_formula_and_do_not_grow_with_the_rows(folder):
    found = under_mpiexec(folder, 2)
    k, m, c, each = 7, 6, 3, 25  # a number travels as three slices of 8 bytes and a level of 1
    formula = {
        "nystrom-kmeans-full/k-means 1": k * m + k + 1,
        "nystrom-kmeans-full/degrees": k,
        "nystrom-kmeans-full/Gram": k * k + k * c + k + 1,
        "glnp-mu/GLNP 1": k * m + k * k + 1,
        "glnp/GLNP start": k * m + k * k + 1,
    }
    for n_rows in (900, 3600):
        sent = {sweep: int(found[f"bytes/{n_rows}/{sweep}"]) for sweep in formula}
        assert sent == {sweep: each * numbers for sweep, numbers in formula.items()}
        # A step of the gradient is one sweep or a few, each with a second k × k array.
        assert int(found[f"bytes/{n_rows}/glnp/GLNP 1"]) % (each * (k * m + 2 * k * k + 5)) == 0
