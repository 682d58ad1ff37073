"""Starting quickly: what a command does not need is not loaded."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any


def without_pandas() -> None:
    """Let pyarrow do without pandas, which it would load at its first conversion.

    That takes half a second, and no command hands a data frame to it. Nothing is changed where
    pandas is loaded already: the command line then runs inside another program.
    """
    if "pandas" in sys.modules or find_spec("pyarrow") is None:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.scalar(0)  # it looks once
    finally:
        sys.meta_path.remove(finder)


class _NoPandas:
    """Finds that there is no pandas."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ImportError("pandas is not loaded for this")
