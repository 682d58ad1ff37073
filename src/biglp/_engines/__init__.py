"""Engines: how blocks of rows are worked on. :func:`make_engine` makes one of them.

A new engine is one file with a subclass of :class:`~biglp._engines.base.Engine`, and one line here
or, in another package, an entry point of the group ``biglp.engines``.
"""

from __future__ import annotations

from typing import Any

from biglp._core import Registry
from biglp._core.errors import ParameterError
from biglp._engines.base import Engine, LocalEngine, SerialEngine, ThreadEngine, cut_runs
from biglp._engines.exact import ExactSum, Slices
from biglp._engines.mpi import end_by_signal, end_together, speaks_to_user

__all__ = [
    "ENGINES",
    "Engine",
    "ExactSum",
    "LocalEngine",
    "SerialEngine",
    "Slices",
    "ThreadEngine",
    "cut_runs",
    "end_by_signal",
    "end_together",
    "make_engine",
    "speaks_to_user",
]

ENGINES: Registry[type[Engine]] = Registry(
    {
        "serial": "biglp._engines.base:SerialEngine",
        "threads": "biglp._engines.base:ThreadEngine",
        "mpi": "biglp._engines.mpi:MpiEngine",
        "dask": "biglp._engines.dask:DaskEngine",
    }
)


def make_engine(engine: Any, threads: int | None = None) -> Engine:
    """Turn the ``engine`` parameter into an engine; close it unless it was one already.

    It may be a name, the address of a Dask scheduler ("dask://host:port"), a client of
    distributed, an mpi4py communicator, or an engine.
    """
    if isinstance(engine, Engine):
        if threads is not None:
            raise ParameterError(
                f"threads={threads} cannot be set for an engine that exists already; leave it out, "
                "or give the number of threads when you make the engine."
            )
        return engine
    given: tuple[Any, ...] = ()
    if isinstance(engine, str) and engine in ENGINES:
        kind = ENGINES[engine]
    else:
        from importlib.metadata import entry_points  # slow to load, and reads files

        for entry in entry_points(group="biglp.engines"):
            ENGINES.setdefault(entry.name, entry.value)  # type: ignore[arg-type]
        if isinstance(engine, str) and engine in ENGINES:
            return make_engine(engine, threads)
        given = (engine,)
        for name in ENGINES:
            kind = ENGINES[name]
            if kind.accepts(engine):
                break
        else:
            others = [words for name in ENGINES for words in ENGINES[name].also_accepted]
            allowed = ", ".join([*map(repr, ENGINES), *others])
            raise ParameterError(f"engine={engine!r} is not known; use {allowed} or an Engine.")
    if threads is None:
        return kind(*given)
    if not kind.takes_threads:
        raise ParameterError(
            f"threads={threads} cannot be set for {kind.__name__}; leave it out, or choose the "
            "engine 'threads' or 'mpi' (where it is the threads of each rank)."
        )
    return kind(*given, n_threads=threads)  # type: ignore[call-arg]
