"""Who does the work. :func:`make_engine` is the only door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from biglp._core.errors import ParameterError
from biglp._engines.base import Engine
from biglp._engines.local import SerialEngine, ThreadEngine
from biglp._engines.mpi.launcher import end_together, launched_as

__all__ = [
    "Engine",
    "SerialEngine",
    "ThreadEngine",
    "end_together",
    "launched_as",
    "make_engine",
]


def make_engine(engine: Any, threads: int | None = None) -> Engine:
    """Turn the ``engine`` parameter into an engine; close it unless it was one already.

    Parameters
    ----------
    engine : str, Engine, mpi4py communicator or distributed.Client
        "serial", "threads", "mpi", "dask" (a cluster of this machine's cores), the address of a
        Dask scheduler ("dask://host:port" or "tcp://host:port"), or something that exists already.
    """
    if isinstance(engine, Engine):
        return engine
    # mpi4py and distributed are loaded only when they are asked for.
    package = type(engine).__module__.partition(".")[0]
    if engine == "mpi" or package == "mpi4py":
        from biglp._engines.mpi.engine import MpiEngine

        return MpiEngine(None if engine == "mpi" else engine)
    if engine == "dask" or package == "distributed" or "://" in str(engine):
        from biglp._engines.dask.engine import DaskEngine

        return DaskEngine(None if engine == "dask" else engine)
    local: dict[str, Callable[[], Engine]] = {"serial": SerialEngine, "threads": ThreadEngine}
    if isinstance(engine, str) and engine in local:
        return local[engine]()
    raise ParameterError(
        f"engine={engine!r} is not known; use 'serial', 'threads', 'mpi', 'dask', "
        "'dask://host:port', an Engine, an mpi4py communicator or a distributed.Client."
    )
