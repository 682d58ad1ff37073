"""How an MPI job starts and how it ends: with the launcher it was built for, and all together."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from biglp._core.errors import EngineError

_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
_PATIENCE = 2.0
"""Seconds a rank that fails waits for the others to fail in the same way."""

_HEARD = 0.5
"""Seconds for the launcher to pass the message on: an aborted job's last words may be dropped."""

_together: tuple[Any, Any] | None = None  # MPI and the communicator of the engine made last


def launched_as() -> tuple[int, int]:
    """Rank and size that the launcher gave this process; (0, 1) without a launcher."""
    size = next((int(os.environ[name]) for name in _SIZES if _is_number(name)), 1)
    rank = next((int(os.environ[name]) for name in _RANKS if _is_number(name)), 0)
    return (rank, size) if size > 1 else (0, 1)


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


def speaks_for_launcher(world: Any) -> bool:
    """Whether this process may print: not when it is one of several jobs of one rank."""
    return bool(world.Get_size() > 1 or launched_as()[0] == 0)


def end_together_on_errors(mpi: Any, comm: Any) -> None:
    """Make an error that nobody catches end every rank, with one message."""
    global _together
    first, _together = _together is None, (mpi, comm)
    if not first:
        return
    previous = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        end_together(lambda: previous(kind, error, trace))

    sys.excepthook = hook


def end_together(say: Callable[[], None]) -> None:
    """End the job with one message.

    When all ranks are ending, rank 0 says why and every process may exit as usual. When this one is
    alone, it says why and stops the job, because the others would wait for it for ever.

    Parameters
    ----------
    say : callable
        Prints the message.
    """
    if _together is None or _together[0].Is_finalized():
        if launched_as()[0] == 0:  # what is wrong before MPI begins is wrong on every rank
            say()
        return
    mpi, comm = _together
    if comm.Get_size() == 1:
        if speaks_for_launcher(mpi.COMM_WORLD):
            say()
        if mpi.COMM_WORLD.Get_size() > 1:
            _abort(mpi)
        return
    if comm.Get_rank() == 0:
        say()
        _flush()
    if not poll(comm.Ibarrier().Test, _PATIENCE):
        if comm.Get_rank() != 0:
            say()
        _abort(mpi)
    elif comm.Get_size() < mpi.COMM_WORLD.Get_size():
        _abort(mpi)  # ranks outside the communicator would wait for these


def poll(ready: Callable[[], bool], patience: float = float("inf")) -> bool:
    """Wait until ``ready()``, sleeping up to 1 ms at a time; return False when out of patience."""
    began, pause = time.monotonic(), 1e-6
    while not ready():
        if time.monotonic() - began > patience:
            return False
        time.sleep(pause)
        pause = min(1.3 * pause, 1e-3)
    return True


def _abort(mpi: Any) -> None:
    _flush()
    time.sleep(_HEARD)
    mpi.COMM_WORLD.Abort(1)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _is_number(name: str) -> bool:
    return os.environ.get(name, "").isdigit()
