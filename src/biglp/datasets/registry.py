"""What is known about each data set: the entries of ``registry.toml``."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from biglp._core.errors import ParameterError

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
    text = files("biglp.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
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
