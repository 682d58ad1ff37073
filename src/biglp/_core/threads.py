"""Threads: BLAS kept to one thread while several of ours work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

MODERATE_RANK = 2000
"""Up to this rank one BLAS thread is quick enough."""


_lock = threading.Lock()
_users = 0  # of one_blas_thread, at the moment
_libraries: list[Any] = [0, []]  # how many modules there were, and the BLAS libraries then
_before: dict[str, int] = {}  # threads that each BLAS library had, by its path


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, whatever thread asks for it.

    The setting belongs to the process, so it is put back when the last caller leaves.
    """
    global _users
    with _lock:
        _users += 1
        _set_blas_threads({}, _before)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _set_blas_threads(_before)
                _before.clear()


def _set_blas_threads(n_threads: Mapping[str, int], before: dict[str, int] | None = None) -> None:
    """Set the threads of BLAS libraries by their path; those that are not named get one.

    What they had is noted in ``before``, where it is not known yet.
    """
    n_modules = len(sys.modules)
    if n_modules != _libraries[0]:  # an import may have brought a library
        known = ThreadpoolController().lib_controllers
        _libraries[:] = [n_modules, [one for one in known if one.user_api == "blas"]]
    for library in _libraries[1]:
        if before is not None:
            before.setdefault(library.filepath, library.num_threads)
        wanted = n_threads.get(library.filepath, 1)
        if library.num_threads == wanted:
            continue
        # Where a library has one setting for the process, threadpoolctl 3.8 lets only the first
        # thread that has set it change it again, and ignores all others until that is cleared.
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
        library.set_num_threads(wanted)


def blas_threads_for(rank: int) -> AbstractContextManager[None]:
    """Keep BLAS to one thread for dense algebra of moderate size.

    Where other programs are at work too, BLAS threads wait for each other: the eigenvectors of a
    1,000 × 1,000 matrix took 0.4 s with one thread and 7 to 9 s with two on two busy cores.
    """
    return one_blas_thread() if rank <= MODERATE_RANK else nullcontext()


@contextmanager
def threads_of_one(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for pieces of work beside the sweeps, each with one BLAS thread."""
    with one_blas_thread(), ThreadPoolExecutor(n_threads, initializer=begin_thread) as pool:
        yield pool


def begin_thread() -> None:
    """Set up a thread: NumPy and some builds of BLAS have a setting for each, CUDA a context."""
    np.errstate(all="ignore").__enter__()  # for as long as the thread is there
    _set_blas_threads({})
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.set_device(torch.cuda.current_device())
