"""MPI jobs started by the real launcher: the same answers, and every bad end a clear one."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")

HERE = Path(__file__).parents[1]
PROGRAM = HERE / "engines_mpi.py"
MPIEXEC = Path(sys.executable).parent / "mpiexec"
CORES = len(os.sched_getaffinity(0))

if not MPIEXEC.exists():
    pytest.skip("no mpiexec beside this Python", allow_module_level=True)


def launch(n_ranks, *command, through_mpi4py=True, **environment):
    """Run a program under mpiexec; return how it ended. Ranks left behind by a failure would wait
    and work for longer than it is given.
    """
    prefix = [MPIEXEC, "-n", str(n_ranks), sys.executable]
    return subprocess.run(
        [*prefix, *(["-m", "mpi4py"] if through_mpi4py else []), *map(str, command)],
        capture_output=True,
        text=True,
        timeout=90,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize("n_ranks", [2, 5])
def test_contract_under_mpiexec(n_ranks):
    contract = (
        HERE / "engines" / "test_engines.py",
        "-k",
        "TestEveryEngine",
        "-x",
        "-q",
        "--timeout=50",
    )
    done = launch(n_ranks, "-m", "pytest", *contract, BIGLP_TEST_ENGINE="mpi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"\d+ passed, \d+ deselected in", done.stdout)) == n_ranks


def test_bytes_are_those_of_the_formula_and_progress_is_drawn_once():
    done = launch(3, PROGRAM, "all-well")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    k, m, each = 5, 4, 25  # a number travels as three slices and the level of the highest
    for line in lines[:3]:
        sent = ast.literal_eval(line.removeprefix("sent "))
        assert sent["k-means 1"] == sent["k-means 2"] == each * (k * m + k + 1)
        assert sent["few"] == sent["many"] == each * (30 * 20 + 7)
        assert sent["agreement"] < 5000
    assert lines[3:] == [f"threads {max(1, CORES // 3)}"] * 3
    assert done.stderr.count("sweep: 600 rows in") == 1


def test_ranks_that_do_not_agree_all_get_the_error_and_may_go_on():
    done = launch(2, PROGRAM, "disagree")
    assert done.returncode == 0, done.stderr
    shorter, other, step, bad = done.stdout.splitlines()
    assert "sees 600 of 600 rows in 60 blocks of array, rank 1 (" in shorter
    assert "sees 590 of 590 rows in 59 blocks" in shorter
    assert "but with other numbers in array" in other
    assert "is at map 'step 0' over 2 blocks, rank 1" in step or "the start of 'step 0'" in step
    assert bad.startswith("BadRowsError row 7 is NaN This happened on rank 1 of 2 (")


class TestBadEnds:
    @pytest.mark.parametrize("through_mpi4py", [True, False])
    def test_a_block_fails_on_one_rank(self, through_mpi4py):
        done = launch(3, PROGRAM, "fail-in-block", through_mpi4py=through_mpi4py)
        assert done.returncode != 0
        assert (
            done.stderr.count("\nbiglp._core.errors.BadRowsError: row 7 is NaN\nThis happened") == 1
        )
        assert "This happened on rank 1 of 3" in done.stderr
        assert "in bad" in done.stderr  # the traceback of the rank that failed
        assert done.stderr.count("a block\n") < 20  # of the 40 of the other ranks

    def test_a_command_line_ends_with_its_own_message(self):
        done = launch(2, PROGRAM, "fail-as-command", through_mpi4py=False)
        assert done.returncode != 0
        assert done.stderr.count("Error: row 7 is NaN") == 1
        assert done.stderr.count("a block\n") < 20  # of the 30 of the other rank
        assert "Traceback" not in done.stderr

    def test_a_rank_is_killed(self):
        done = launch(2, PROGRAM, "killed")
        assert done.returncode != 0
        assert "BAD TERMINATION" in done.stdout

    @pytest.mark.parametrize(("moment", "number"), [("before", "SIGINT"), ("after", "SIGTERM")])
    def test_a_rank_is_told_to_end_while_it_starts(self, moment, number, tmp_path):
        """Before or after it has loaded MPI; the others wait for it there."""
        done = launch(2, PROGRAM, f"told-{moment}", number, tmp_path, through_mpi4py=False)
        assert done.returncode != 0
        assert "BAD TERMINATION" in done.stdout

    def test_the_launcher_of_another_mpi(self):
        # Without the connection to its launcher MPICH starts as a job of its own, as it does under
        # the launcher of another MPI; the size that the launcher announces remains.
        hidden = ("env", "-u", "PMI_FD", "-u", "PMI_PORT")
        command = [MPIEXEC, "-n", "2", *hidden, sys.executable, str(PROGRAM), "all-well"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        assert done.stderr.count("the launcher started 2 processes, but each is an MPI job") == 1
