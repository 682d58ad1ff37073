"""Files that are being fetched, and what is written down about them.

``NAME.part`` holds the bytes that have arrived, and ``NAME.part.json`` says what they are the
beginning of. A file that is whole has its own name, and ``NAME.json`` records its address, size and
SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biglp._core.files import PART, atomic_write


@dataclass(frozen=True)
class Beginning:
    """What a part is the beginning of.

    Attributes
    ----------
    url : str
    total : int, optional
        Length of the whole file; None where the server did not say.
    version : str, optional
        The server's mark of the version: ETag or Last-Modified.
    """

    url: str
    total: int | None = None
    version: str | None = None

    @classmethod
    def of(cls, part: Path, url: str) -> Beginning | None:
        """Read what a part is the beginning of; None when that is not known, or another file."""
        try:
            found = cls(**json.loads(note_of(part).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.url == url else None

    def write(self, part: Path) -> None:
        """Write it down beside the part."""
        with atomic_write(note_of(part)) as file:
            file.write(json.dumps(asdict(self)).encode())


def part_of(path: Path) -> Path:
    """Where a file is while it is not whole."""
    return path.with_name(path.name + PART)


def whole_of(part: Path) -> Path:
    """Where a file is once it is whole."""
    return part.with_name(part.name.removesuffix(PART))


def note_of(part: Path) -> Path:
    """Where it is written down what a part is the beginning of."""
    return part.with_name(part.name + ".json")


def record_of(path: Path) -> Path:
    """Where it is written down what a file is."""
    return path.with_name(path.name + ".json")


def read_record(path: Path) -> dict[str, Any]:
    """Return what was found when the file was first fetched; empty when it never was."""
    try:
        found = json.loads(record_of(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write down what a file is, to recognise it later."""
    with atomic_write(record_of(path)) as file:
        file.write(json.dumps(record, indent=1).encode())


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def length(path: Path) -> int:
    """Bytes of a file; 0 when there is none."""
    with suppress(OSError):
        return path.stat().st_size
    return 0
