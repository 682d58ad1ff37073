"""Who does the work. :func:`make_engine` is the only door."""

from __future__ import annotations

from typing import Any

from biglp._engines.base import Engine
from biglp._engines.local import SerialEngine, ThreadEngine
from biglp._errors import ParameterError

__all__ = ["Engine", "SerialEngine", "ThreadEngine", "make_engine"]


def make_engine(engine: Any) -> Engine:
    """Turn the ``engine`` parameter into an engine."""
    if isinstance(engine, Engine):
        return engine
    if engine == "serial":
        return SerialEngine()
    if engine == "threads":
        return ThreadEngine()
    raise ParameterError(f"engine={engine!r} is not known; use 'serial', 'threads' or an Engine.")
