"""Dask's own library: loading it, reaching a scheduler, and saying what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from biglp._core.errors import EngineError, MissingExtraError

CONNECT_SECONDS = 30
"""Dask's own: asked for its versions, a scheduler of 2024 loads pandas before it answers."""


def load_distributed() -> Any:
    """Load Dask's distributed scheduler."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            'engine="dask" needs Dask\'s distributed scheduler, which is not installed; '
            'install it with: pip install "biglp[dask]"'
        ) from error
    return distributed


def connect(address: str) -> Any:
    """Connect to a scheduler, or say within seconds that it cannot be reached."""
    address = address.replace("dask://", "tcp://", 1)
    try:
        return load_distributed().Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address} ({error}). Check the address, and that "
            "the scheduler runs: start one with `dask scheduler` and workers with "
            f"`dask worker {address}`."
        ) from error


@contextmanager
def explained(client: Any) -> Iterator[None]:
    """Turn errors of the cluster into ones that say what to do."""
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise EngineError(
            f"several workers died one after the other while working on the same blocks ({error}); "
            "this is mostly for lack of memory. Give a smaller memory=, or workers with more."
        ) from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "biglp":
            raise
        raise EngineError(
            "a worker has no biglp; install it on every worker with: pip install biglp"
        ) from error
    except (CancelledError, OSError) as error:
        # Workers send no OSError (see worker.py): this one is about the connection.
        if client.status == "running" and not isinstance(error, (CancelledError, CommClosedError)):
            raise
        raise EngineError(
            f"the connection to the Dask scheduler at {client.scheduler.addr} was lost during a "
            f"sweep ({error}); see that it still runs."
        ) from error
