"""Where data sets are kept: a cache folder of the user's, and ``BIGLP_DATA``.

A data set has a folder of its own with ``rows.npy``, ``labels.npy`` and ``meta.json``, which is
written last: a folder without it is not finished. Downloads are in ``downloads`` below it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from biglp._core.places import user_cache
from biglp.datasets.parts import part_of
from biglp.datasets.registry import Entry, entry

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
