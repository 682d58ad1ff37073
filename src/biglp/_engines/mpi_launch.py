"""How an MPI job starts and how it ends: with the launcher it was built for, and all together."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from biglp._core.errors import EngineError, MissingExtraError

_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
_PATIENCE = 2.0
"""Seconds a rank that fails waits for the others to fail in the same way."""

_SECONDS_TO_PRINT = 0.5
"""Time for the launcher to print the message: it may drop what an aborted job wrote last."""

_job: tuple[Any, Any] | None = None  # MPI and the communicator of the engine made last


def launched_as() -> tuple[int, int]:
    """Rank and size that the launcher gave this process; (0, 1) without a launcher."""
    size = next((int(os.environ[name]) for name in _SIZES if _is_number(name)), 1)
    rank = next((int(os.environ[name]) for name in _RANKS if _is_number(name)), 0)
    return (rank, size) if size > 1 else (0, 1)


def load_mpi() -> Any:
    """Load mpi4py and the MPI library behind it."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        # mpi4py without an MPI library raises RuntimeError
        what = "mpi4py is not installed" if isinstance(error, ImportError) else str(error)
        raise MissingExtraError(
            f'engine="mpi" needs mpi4py and an MPI library ({what.splitlines()[0]}); install them '
            'with: pip install "biglp[mpich]" on a laptop, or pip install "biglp[mpi]" on a '
            "cluster that has its own MPI."
        ) from error
    return MPI


def private_copies(mpi: Any, comm: Any) -> tuple[Any, Any]:
    """Return two copies of a communicator for our messages alone, made once and kept with it."""
    global _copies_key
    if _copies_key is None:
        _copies_key = mpi.Comm.Create_keyval(delete_fn=_free_copies)
    copies = comm.Get_attr(_copies_key)
    if copies is None:
        copies = comm.Dup(), comm.Dup()
        comm.Set_attr(_copies_key, copies)
    return copies


_copies_key: int | None = None


def _free_copies(comm: Any, key: int, copies: tuple[Any, Any]) -> None:
    for copy in copies:
        copy.Free()


def check_launcher(world_size: int) -> None:
    """Refuse to run as several jobs of one rank each, which is what a wrong launcher starts."""
    _, size = launched_as()
    if world_size == 1 and size > 1:
        raise EngineError(
            f"the launcher started {size} processes, but each is an MPI job of its own with 1 "
            "rank: the launcher belongs to another MPI than the library mpi4py loads. Use the "
            "mpiexec of that library (next to the Python it is installed in), or install mpi4py "
            "for the cluster's MPI."
        )


def speaks_to_user() -> bool:
    """Whether this process is the one of its job that prints.

    An engine's ``is_root`` says the same. Before there is an MPI engine, the launcher's own numbers
    decide: what is wrong then is wrong in every process.
    """
    if _job is None or _job[0].Is_finalized():
        return launched_as()[0] == 0
    mpi, comm = _job
    if mpi.COMM_WORLD.Get_size() == 1:  # perhaps one of several jobs of one rank
        return launched_as()[0] == 0
    return bool(comm.Get_rank() == 0)


def end_together_on_errors(mpi: Any, comm: Any) -> None:
    """Make an error that is not caught end every rank, with one message."""
    global _job
    first, _job = _job is None, (mpi, comm)
    if not first:
        return
    previous = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        end_together(lambda: previous(kind, error, trace))

    sys.excepthook = hook


def end_together(say: Callable[[], None]) -> None:
    """End the job with one message.

    When all ranks are ending, rank 0 says why and every process may exit as usual. When this one is
    the only one, it says why and stops the job, because the others would wait for it for ever.
    """
    if speaks_to_user():
        say()
        _flush()
    if _job is None or _job[0].Is_finalized():
        return
    mpi, comm = _job
    # All ranks of the communicator are ending when they meet here within a short time.
    together = poll(comm.Ibarrier().Test, _PATIENCE)
    if not together and not speaks_to_user():
        say()
    if not together or comm.Get_size() < mpi.COMM_WORLD.Get_size():
        _flush()
        time.sleep(_SECONDS_TO_PRINT)
        mpi.COMM_WORLD.Abort(1)  # the other ranks would wait for these


def end_by_signal(number: int) -> None:
    """End a rank that was told to end before it has met the others, by the signal that told it.

    The others wait for it, and no message can reach them. A launcher ends a job whose process was
    killed by a signal; after an exit code it lets the others wait for ever.
    """
    if launched_as()[1] == 1 or _job is not None:
        return
    _flush()
    time.sleep(_SECONDS_TO_PRINT)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def poll(ready: Callable[[], bool], patience: float = float("inf")) -> bool:
    """Wait until ``ready()``, sleeping up to 1 ms at a time; return False when out of patience."""
    began, pause = time.monotonic(), 1e-6
    while not ready():
        if time.monotonic() - began > patience:
            return False
        time.sleep(pause)
        pause = min(1.3 * pause, 1e-3)
    return True


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _is_number(name: str) -> bool:
    return os.environ.get(name, "").isdigit()
