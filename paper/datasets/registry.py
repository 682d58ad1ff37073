"""What is known about each data set: the entries of ``registry.toml``."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from contextlib import suppress
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from biglp._core.errors import ParameterError
from biglp._files.local import PART, atomic_write
from biglp._files.uri import user_cache

# --------------------------------------------------------------------------------------------------
# Files that are being fetched, and what is written down about them.
#
# ``NAME.part`` holds the bytes that have arrived, and ``NAME.part.json`` says what they are the
# beginning of. A file that is whole has its own name, and ``NAME.json`` records its address, size
# and SHA-256.


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


# --------------------------------------------------------------------------------------------------


MOST_OTHER_BYTES = 64 << 20
MOST_VALUE_BYTES = 40


@dataclass(frozen=True)
class RemoteFile:
    """A file that is published somewhere.

    Attributes
    ----------
    name : str
        Name in the cache; its ending says how it is packed.
    urls : tuple of str
        Addresses of the same bytes, tried in order.
    zip : str or None
        Address of an archive that holds the file, tried when no address has it.
    size, sha256 : int or None, str or None
        Only where they are known for certain.
    """

    name: str
    urls: tuple[str, ...]
    zip: str | None = None
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class StandIn:
    """A smaller file of ``BIGLP_DATA`` that may be used in a data set's place."""

    file: str
    classes: tuple[int, ...]
    what: str


@dataclass(frozen=True)
class Entry:
    """One data set; the fields are explained at the head of ``registry.toml``."""

    name: str
    title: str
    rows: int
    features: int
    classes: tuple[int, ...]
    paper_rows: int
    percents: tuple[float, ...]
    licence: str
    citation: str
    note: str
    files: tuple[RemoteFile, ...] = ()
    text: Literal["csv", "libsvm"] = "csv"
    header: bool = False
    dtype: str = "float32"
    simulation: str | None = None
    deformed_from: str | None = None
    stand_in: StandIn | None = None

    @property
    def prepared_bytes(self) -> int:
        """Bytes of the rows in the cache."""
        if self.simulation is not None:
            return 0
        return self.rows * self.features * np.dtype(self.dtype).itemsize

    @property
    def most_bytes(self) -> int:
        """Bytes that a published file, or an archive with several of them, can have at most.

        A number takes up to 25 characters and a few files hold more rows than are used, of which
        all are packed to a part of that.
        """
        return MOST_OTHER_BYTES + MOST_VALUE_BYTES * self.rows * self.features


def names() -> list[str]:
    """Names of the data sets.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from biglp import datasets
    >>> "susy" in datasets.names()
    True
    """
    return list(_entries())


def entry(name: str) -> Entry:
    """Return what is known about a data set; refuse a name that is not known."""
    known = _entries()
    if name not in known:
        near = get_close_matches(str(name).lower(), known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ParameterError(
            f"there is no data set {name!r}; the data sets are {', '.join(known)}.{meant}"
        )
    return known[name]


def mirrored(url: str, mirror: str | None = None) -> str:
    """Replace scheme and host of an address by those of ``mirror`` or ``BIGLP_MIRROR``."""
    mirror = mirror or os.environ.get("BIGLP_MIRROR")
    if mirror and urlsplit(mirror).scheme not in ("http", "https"):
        raise ParameterError(
            f"mirror={mirror!r} (or BIGLP_MIRROR) must begin with http:// or https://."
        )
    return mirror.rstrip("/") + urlsplit(url).path if mirror else url


@lru_cache(maxsize=1)
def _entries() -> dict[str, Entry]:
    text = files("paper.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    return {name: _entry(name, facts) for name, facts in tomllib.loads(text).items()}


def _entry(name: str, facts: dict[str, Any]) -> Entry:
    given = {**facts, "name": name}
    for field in ("classes", "percents"):
        given[field] = tuple(given[field])
    given["files"] = tuple(
        RemoteFile(**{**file, "urls": tuple(file["urls"])}) for file in facts.get("files", ())
    )
    if "stand_in" in facts:
        about = facts["stand_in"]
        given["stand_in"] = StandIn(about["file"], tuple(about["classes"]), about["what"])
    return Entry(**given)


# --------------------------------------------------------------------------------------------------
# Where data sets are kept: a cache folder of the user's, and ``BIGLP_DATA``.
#
# A data set has a folder of its own with ``rows.npy``, ``labels.npy`` and ``meta.json``, which is
# written last: a folder without it is not finished. Downloads are in ``downloads`` below it.


ROWS, LABELS, META, DOWNLOADS = "rows.npy", "labels.npy", "meta.json", "downloads"


def cache_folder() -> Path:
    """Folder of all data sets: ``BIGLP_CACHE``, or the user's cache folder of the platform."""
    return user_cache() / "datasets"


def data_folder() -> Path | None:
    """Folder of data that did not come by ``fetch``, from ``BIGLP_DATA``."""
    named = os.environ.get("BIGLP_DATA")
    return Path(named).expanduser() if named else None


def own_folder(known: Entry) -> Path:
    """Where a data set is kept in the cache, whether it is there or not."""
    return cache_folder() / known.name


def prepared_folder(known: Entry) -> Path | None:
    """Where the prepared rows of a data set are: the cache or ``BIGLP_DATA``; None if nowhere."""
    data = data_folder()
    for folder in (own_folder(known), *((data / known.name,) if data else ())):
        if read_meta(folder) and (folder / ROWS).exists() and (folder / LABELS).exists():
            return folder
    return None


def stand_in_file(known: Entry) -> Path | None:
    """The file of ``BIGLP_DATA`` that may be used in a data set's place; None if not there."""
    data = data_folder()
    if known.stand_in is None or data is None:
        return None
    path = data / known.stand_in.file
    return path if path.exists() else None


def read_meta(folder: Path) -> dict[str, Any]:
    """Return what was written down about prepared rows; empty where there are none."""
    try:
        found = json.loads((folder / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def state(known: Entry) -> tuple[str, str]:
    """Say in a word whether a data set is here, and where it is (or would be).

    Returns
    -------
    state : {"simulated", "here", "cached", "fetched", "part fetched", "stand-in", "missing"}
    where : str
    """
    if known.simulation is not None:
        return "simulated", known.simulation
    folder = prepared_folder(known)
    if folder is not None:
        return ("cached" if folder == own_folder(known) else "here"), str(folder)
    downloads = own_folder(known) / DOWNLOADS
    whole = [(downloads / file.name).exists() for file in known.files]
    if whole and all(whole):
        return "fetched", str(downloads)
    if any(whole) or any(part_of(downloads / file.name).exists() for file in known.files):
        return "part fetched", str(downloads)
    file = stand_in_file(known)
    if file is not None:
        return "stand-in", str(file)
    return "missing", str(own_folder(known))


def where(name: str) -> Path | str:
    """Say where a data set is, or would be once it is fetched.

    Parameters
    ----------
    name : str

    Returns
    -------
    where : Path or str
        A folder with ``rows.npy`` and ``labels.npy``; the ``sim:`` text of a simulation.

    Examples
    --------
    >>> from biglp import datasets
    >>> str(datasets.where("sim100m")).startswith("sim:")
    True
    """
    known = entry(name)
    if known.simulation is not None:
        return known.simulation
    return prepared_folder(known) or own_folder(known)
