"""From named columns to features. The names below are the room's door; they load pyarrow."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {
    "KINDS": "kinds",
    "Column": "kinds",
    "Median": "encode_columns",
    "Number": "kinds",
    "TableFile": "table",
    "TableFormat": "source",
    "look_at_column": "detect_kinds",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
