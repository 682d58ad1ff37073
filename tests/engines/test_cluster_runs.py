"""``biglp fit`` on clusters: same answers, resumed runs, one clear message.

Everything is started by the real launchers, and ended by the test that started it.
"""

import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from clusters import BIGLP, MPIEXEC, DaskProcesses, eventually

pytest.importorskip("mpi4py")
pytest.importorskip("distributed")
if not (MPIEXEC.exists() and BIGLP.exists()):
    pytest.skip("no mpiexec or no biglp beside this Python", allow_module_level=True)
FIT = ("fit", "rows.npy", "--labels", "labels.npy", "--factor", "anchors", "-k", "20")
LONG = ("fit", "sim:600Kx10,labels=50", "--factor", "nystrom", "-k", "40", "--quiet")
# An absolute path that leads every process to its own working folder.
HERE = "/proc/self/cwd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(3000) % 3)
    rows = (3 * np.eye(3, 5)[truth] + rng.normal(size=(3000, 5))).astype(np.float32)
    labels = np.where(np.arange(3000) < 60, truth, -1)
    np.save(folder / "rows.npy", rows)
    np.save(folder / "labels.npy", labels)
    run(folder, *FIT, "-o", "alone", "--quiet")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with DaskProcesses(tmp_path_factory.mktemp("dask"), 2) as processes:
        yield processes


def run(folder, *command, ranks=None, code=0, **environment):
    launcher = [MPIEXEC, "-n", str(ranks)] if ranks else []
    done = subprocess.run(
        [*launcher, BIGLP, *command, *(["--engine", "mpi"] if ranks else [])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def answers(folder, name):
    return np.load(folder / name / "labels.npy")


def test_ranks_give_the_answer_of_one_process(folder):
    done = run(folder, *FIT, "-o", "ranks", ranks=3)
    assert done.stdout.count("3,000 rows labelled") == 1
    assert (answers(folder, "ranks") == answers(folder, "alone")).all()
    assert not (folder / "ranks" / ".biglp-run").exists()
    assert parts_of(folder / "ranks" / "model.biglp") == parts_of(folder / "alone" / "model.biglp")
    predict = ("predict", "ranks/model.biglp", "rows.npy", "-o", "again.npy", "--quiet")
    run(folder, *predict, ranks=2)
    again = np.load(folder / "again.npy")
    assert (again == answers(folder, "alone")).mean() > 0.99


def test_workers_in_another_folder(folder, cluster):
    address = cluster.address.replace("tcp://", "dask://")
    done = run(folder, *FIT, "-o", "workers", "--engine", address)
    assert "3,000 rows labelled" in done.stdout
    assert (answers(folder, "workers") == answers(folder, "alone")).all()


@pytest.fixture(scope="module")
def whole(folder):
    run(folder, *LONG, "-o", "whole")
    return answers(folder, "whole")


def start(folder, *command):
    started = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    kept = folder / command[command.index("-o") + 1] / ".biglp-run"
    eventually(lambda: (kept / "rows-factor.npz").stat(), seconds=60)
    return started


def test_a_killed_rank_ends_the_job_and_another_number_of_ranks_resumes_it(folder, whole):
    job = (*LONG, "-o", "killed", "--engine", "mpi")
    launched = start(folder, MPIEXEC, "-n", "3", BIGLP, *job)
    os.kill(ranks_of(launched.pid)[1], 9)
    printed, _ = launched.communicate(timeout=60)
    assert launched.returncode != 0
    assert printed.count("BAD TERMINATION") == 1
    assert (folder / "killed" / ".biglp-run" / "rows-factor.npz").exists()
    assert not (folder / "killed" / "labels.npy").exists()
    run(folder, *LONG, "-o", "killed", "--resume", ranks=2)
    assert (answers(folder, "killed") == whole).all()
    assert not (folder / "killed" / ".biglp-run").exists()


def test_a_killed_client_of_dask_is_resumed(folder, whole, cluster):
    job = (*LONG, "-o", "client", "--engine", cluster.address.replace("tcp://", "dask://"))
    client = start(folder, BIGLP, *job)
    client.kill()
    client.communicate()
    assert not (folder / "client" / "labels.npy").exists()
    cluster.workers.append(cluster.add_worker())
    run(folder, *job, "--resume")
    assert (answers(folder, "client") == whole).all()


def ranks_of(launcher):
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(path.parent.name)] = int(words[1])
    below = {launcher}
    for _ in range(4):
        below |= {child for child, parent in parents.items() if parent in below}
    return sorted(pid for pid in below if b"biglp" in command_of(pid) and pid != launcher)[-3:]


def command_of(pid):
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"" if b"mpiexec" in words[0] or b"hydra" in words[0] else b" ".join(words)


class TestBadLuck:
    @pytest.mark.parametrize(
        ("command", "code", "message"),
        [
            (("fit", "none.npy", "--labels", "labels.npy"), 3, "there is no file none.npy"),
            ((*FIT[:4], "--factor", "guess"), 2, "--factor 'guess' is not known"),
            ((*FIT, "--nonsense"), 2, "No such option"),
        ],
    )
    def test_mistakes_of_all_ranks(self, folder, command, code, message):
        done = run(folder, *command, "-o", "none", ranks=3, code=code)
        assert done.stderr.count(message) == 1
        assert not (folder / "none").exists()

    def test_an_extra_that_is_not_installed(self, folder, tmp_path):
        for name in ("mpi4py", "distributed"):
            (tmp_path / f"{name}.py").write_text("raise ImportError('not here')")
        hidden = {"PYTHONPATH": str(tmp_path)}
        done = run(folder, *FIT, "-o", "none", ranks=2, code=6, **hidden)
        assert done.stderr.count('pip install "biglp[mpi]"') == 1
        done = run(folder, *FIT, "-o", "none", "--engine", "dask", code=6, **hidden)
        assert done.stderr.count('pip install "biglp[dask]"') == 1

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ("longer", "where the work began. Every process must see the same file"),
            ("changed", "the ranks do not agree: rank 0 "),
            ("missing", "cannot be seen from"),
        ],
    )
    def test_ranks_that_see_different_files(self, folder, tmp_path, other, message):
        rows = np.load(folder / "rows.npy")
        np.save(tmp_path / "labels.npy", np.load(folder / "labels.npy"))
        if other != "missing":
            rows = np.tile(rows, (2, 1)) if other == "longer" else rows + 1
            np.save(tmp_path / "rows.npy", rows)
        command = (BIGLP, "fit", f"{HERE}/rows.npy", *FIT[2:], "-o", str(tmp_path / "out"))
        here = ("-n", "1", "-wdir", str(folder), *command, "--engine", "mpi")
        there = ("-n", "1", "-wdir", str(tmp_path), *command, "--engine", "mpi")
        done = subprocess.run(
            [MPIEXEC, *here, ":", *there], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode != 0
        assert sum(done.stderr.count(part) for part in message.split("|")) == 1, done.stderr
        assert "Traceback" not in done.stderr
