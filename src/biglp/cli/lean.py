"""Starting quickly: what a command does not need is not loaded."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def without_pandas() -> None:
    """Let pyarrow do without pandas, which it would load at its first conversion.

    That takes half a second, and no command hands a data frame to it. Nothing is changed where
    pandas is loaded already: the command line then runs inside another program.
    """
    if "pandas" in sys.modules or find_spec("pyarrow") is None:
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import pyarrow as pa

        pa.scalar(0)  # it looks once
    finally:
        del sys.modules["pandas"]
