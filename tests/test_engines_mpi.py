"""MPI jobs started by the real launcher: the same answers, and every bad end a clear one."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")

HERE = Path(__file__).parent
PROGRAM = HERE / "engines_mpi.py"
MPIEXEC = Path(sys.executable).parent / "mpiexec"
CORES = len(os.sched_getaffinity(0))

if not MPIEXEC.exists():
    pytest.skip("no mpiexec beside this Python", allow_module_level=True)


def launch(n_ranks, *command, through_mpi4py=True, timeout=60, **environment):
    """Run a program under mpiexec; return what it wrote, how it ended and how long it took."""
    prefix = [MPIEXEC, "-n", str(n_ranks), sys.executable]
    began = time.monotonic()
    done = subprocess.run(
        [*prefix, *(["-m", "mpi4py"] if through_mpi4py else []), *map(str, command)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
        check=False,
    )
    return done, time.monotonic() - began


@pytest.mark.parametrize("n_ranks", [2, 3, 5])
def test_contract_under_mpiexec(n_ranks):
    contract = (HERE / "test_engines.py", "-k", "TestEveryEngine", "-x", "-q", "--timeout=50")
    done, _ = launch(n_ranks, "-m", "pytest", *contract, BIGLP_TEST_ENGINE="mpi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("15 passed") == n_ranks


class TestBadEnds:
    """Each ends the whole job at once, with one message and a non-zero exit."""

    @pytest.mark.parametrize("through_mpi4py", [True, False])
    def test_a_block_fails_on_one_rank(self, through_mpi4py):
        done, seconds = launch(3, PROGRAM, "fail-in-block", through_mpi4py=through_mpi4py)
        assert done.returncode != 0
        assert done.stderr.count("\nbiglp._errors.BadRowsError: row 7 is NaN\nThis happened") == 1
        assert "This happened on rank 1 of 3" in done.stderr
        assert "in bad" in done.stderr  # the traceback of the rank that failed
        assert seconds < 10  # the others had 20 s of work left

    def test_an_error_can_be_caught_and_the_job_goes_on(self):
        done, _ = launch(2, PROGRAM, "fail-in-block-caught")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("caught: row 7 is NaN This happened on rank 1 of 2 (")

    @pytest.mark.parametrize("through_mpi4py", [True, False])
    def test_one_rank_fails_outside_a_sweep(self, through_mpi4py):
        done, seconds = launch(3, PROGRAM, "fail-alone", through_mpi4py=through_mpi4py)
        assert done.returncode != 0
        assert done.stderr.count("BadRowsError: this rank has no such file") == 1
        assert seconds < 10

    def test_all_ranks_fail_in_the_same_way(self):
        done, _ = launch(3, PROGRAM, "fail-all", through_mpi4py=False)
        assert done.returncode != 0
        assert done.stderr.count("BadRowsError: alpha=2 is not allowed") == 1

    def test_a_command_line_ends_with_its_own_message(self):
        done, seconds = launch(3, PROGRAM, "fail-as-command", through_mpi4py=False)
        assert done.returncode != 0
        assert done.stderr.count("Error: row 7 is NaN") == 1
        assert "Traceback" not in done.stderr
        assert seconds < 10

    def test_a_rank_is_killed(self):
        done, seconds = launch(3, PROGRAM, "killed")
        assert done.returncode != 0
        assert "KILLED BY SIGNAL: 9" in done.stdout + done.stderr
        assert seconds < 10

    @pytest.mark.parametrize(
        ("scenario", "message"),
        [
            ("other-length", "rank 1 ({host}) is at sum 'sum' over 6 blocks and sees 590 rows"),
            ("other-rows", "the ranks are not given the same rows: rank 0 "),
            ("other-step", "the ranks are not at the same step: rank 0 "),
        ],
    )
    def test_ranks_that_do_not_agree(self, scenario, message):
        done, _ = launch(2, PROGRAM, scenario)
        assert done.returncode != 0
        assert done.stderr.count(message.format(host=os.uname().nodename)) == 1

    @pytest.mark.parametrize("size", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
    def test_the_launcher_of_another_mpi(self, size):
        # Without the connection to its launcher MPICH starts as a job of its own, as it does under
        # the launcher of another MPI; the sizes that the launcher announces remain.
        hidden = ("env", "-u", "PMI_FD", "-u", "PMI_PORT", "-u", "PMI_SIZE", f"{size}=3")
        command = [MPIEXEC, "-n", "3", *hidden, sys.executable, str(PROGRAM), "progress"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        assert done.stderr.count("the launcher started 3 processes, but each is an MPI job") == 1

    def test_no_mpi_library(self):
        done = subprocess.run(
            [sys.executable, PROGRAM, "progress"],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "MPI4PY_LIBMPI": "/no/such/libmpi.so"},
            check=False,
        )
        assert done.returncode != 0
        assert 'pip install "biglp[mpich]"' in done.stderr


def test_bytes_sent_are_those_of_the_formula_and_threads_share_the_node():
    done, _ = launch(3, PROGRAM, "numbers")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        sent, _, threads = line.partition("{")[2].rpartition(" threads ")
        sent = ast.literal_eval("{" + sent)
        assert int(threads) == max(1, CORES // 3)
        k, m, each = 5, 4, 25  # a number travels as three slices and the level of the highest
        assert sent["k-means 1"] == sent["k-means 2"] == each * (k * m + k + 1)
        assert sent["few"] == sent["many"] == each * (30 * 20 + 7)
        assert sent["agreement"] < 4 * 1000


def test_progress_is_drawn_once_for_all_rows():
    done, _ = launch(3, PROGRAM, "progress")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("sweep: 600 rows in") == 1


def test_a_communicator_of_the_users_own():
    done, _ = launch(4, PROGRAM, "own-communicator")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"
