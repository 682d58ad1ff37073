"""Names of arrays inside a file: ``rows.h5::name``."""

from __future__ import annotations

import os
from typing import Any

INSIDE = "::"
"""What stands between a file and the name of an array in it."""


def split_inside(path: Any) -> tuple[str, str]:
    """Split ``rows.h5::name`` into the file and ``::name``, which is empty where there is none."""
    path = str(path)
    file, mark, name = path.partition(INSIDE)
    return (path, "") if os.path.exists(path) else (file, mark + name)
