"""Delta and Iceberg tables: a folder of Parquet files, of which only some are alive.

Rows that were deleted or overwritten are still in the folder. Which files are alive stands in the
table's log, which ``deltalake`` and ``pyiceberg`` read; a live file is then read like any other.
What cannot be told by whole files (rows struck out one by one, renamed columns) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from biglp._core.errors import BadRowsError, MissingExtraError
from biglp._files.copies import asked_once, names_below
from biglp._files.uri import StorePath, as_place, one_line, s3_endpoint

DELTA_LOG, ICEBERG_LOG = "_delta_log", "metadata"
METADATA = ".metadata.json"
INSTALL = "pip install 'biglp[lake]'"


def lake_of(place: Any) -> str | None:
    """ "Delta" or "Iceberg" for the folder of such a table, or an Iceberg file; else None."""
    if place.name.endswith(METADATA):
        return "Iceberg"
    if isinstance(place, StorePath):
        delta = any(name.startswith(f"{DELTA_LOG}/") for name in names_below(place))
    else:
        delta = (place / DELTA_LOG).is_dir()
        if not delta and not (place / ICEBERG_LOG).is_dir():
            return None
    return "Delta" if delta else "Iceberg" if _metadata_files(place) else None


def live_files(place: Any) -> tuple[list[str], str]:
    """Files of a table that are alive, in order of name, and which version of the table that is."""
    kind = lake_of(place)
    read = _delta if kind == "Delta" else _iceberg
    try:
        files, version = read(place)
    except ImportError as error:
        raise MissingExtraError(
            f"{place} is a {kind} table, whose live files are listed by "
            f"{'deltalake' if kind == 'Delta' else 'pyiceberg'}; install it with: {INSTALL}"
        ) from error
    except (BadRowsError, MissingExtraError):
        raise
    except Exception as error:  # two packages with many classes of errors
        raise BadRowsError(
            f"{place} cannot be read as a {kind} table: {one_line(error)}. Check that it is whole, "
            "and that the credentials allow reading it."
        ) from error
    if not files:
        raise BadRowsError(f"{place} is a {kind} table without rows ({version}).")
    return files, f"{kind} table, {version}"


def refuse_parts(files: Iterable[Any]) -> None:
    """Refuse files that belong to such a table: some of them may be dead."""
    looked: set[str] = set()
    for file in files:
        folder = file.parent
        while str(folder) not in looked and folder != folder.parent:
            looked.add(str(folder))
            inside = folder.parent if folder.name == "data" else folder
            log = folder / DELTA_LOG
            stored = isinstance(log, StorePath)
            delta = asked_once(StorePath.is_dir, log) if stored else log.is_dir()
            if delta or (inside != folder and _metadata_files(inside)):
                raise inside_a_table(file, inside)
            folder = folder.parent


def inside_a_table(file: Any, table: Any) -> BadRowsError:
    """Explain that a file may be dead."""
    return BadRowsError(
        f"{file} belongs to the Delta or Iceberg table {table}; some of its files hold rows that "
        "were deleted or overwritten. Give the folder of the table itself: its live files are read."
    )


def _delta(place: Any) -> tuple[list[str], str]:
    from deltalake import DeltaTable

    if isinstance(place, StorePath):
        table = DeltaTable(str(replace(place, query="")), storage_options=_for_delta(place))
    else:
        table = DeltaTable(str(place))
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping != "none":
        raise BadRowsError(
            f"{place} is a Delta table with column mapping ({mapping}): its files name columns "
            "otherwise than the table does. Write it anew without, for example as Parquet."
        )
    struck = _struck_out(table)
    if struck:
        raise BadRowsError(
            f"{place} is a Delta table with deletion vectors: {struck} strike out rows of files "
            "that are still alive. Write these files anew first (OPTIMIZE, or REORG TABLE … APPLY "
            "(PURGE))."
        )
    return sorted(_with_options(file, place) for file in table.file_uris()), (
        f"version {table.version()}"
    )


def _struck_out(table: Any) -> int:
    """How many files have deletion vectors."""
    features = table.protocol().reader_features or ()
    if "deletionVectors" not in features:
        return 0
    return sum(len(batch) for batch in table.deletion_vectors())


def _for_delta(place: StorePath) -> dict[str, str]:
    endpoint = s3_endpoint(place.query) if place.scheme == "s3" else None
    if endpoint is None:
        return {}
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower(),
    }


def _iceberg(place: Any) -> tuple[list[str], str]:
    from pyiceberg.table import StaticTable

    name = str(place if place.name.endswith(METADATA) else _newest(place))
    properties = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    if isinstance(place, StorePath):
        name = name.removesuffix(f"?{place.query}")
        endpoint = s3_endpoint(place.query)
        if endpoint is not None:
            properties["s3.endpoint"] = endpoint
    table = StaticTable.from_metadata(name, properties)
    _refuse_renamed(place, table)
    snapshot = table.current_snapshot()
    if snapshot is None:
        return [], "no snapshot"
    files = []
    for task in table.scan().plan_files():
        if task.delete_files:
            raise BadRowsError(
                f"{place} is an Iceberg table with delete files, which strike out rows of files "
                "that are still alive. Write these files anew first (rewrite_data_files)."
            )
        if str(task.file.file_format).rpartition(".")[2].upper() != "PARQUET":
            raise BadRowsError(
                f"{place} is an Iceberg table with files in {task.file.file_format}; only Parquet "
                "can be read. Write these files anew (rewrite_data_files)."
            )
        files.append(_with_options(task.file.file_path, place))
    return sorted(files), f"snapshot {snapshot.snapshot_id}"


def _refuse_renamed(place: Any, table: Any) -> None:
    """Refuse a table whose columns had other names when some of its files were written."""
    names: dict[int, str] = {}
    owners: dict[str, int] = {}
    for schema in table.schemas().values():
        for field in schema.fields:
            if names.setdefault(field.field_id, field.name) != field.name or (
                owners.setdefault(field.name, field.field_id) != field.field_id
            ):
                raise BadRowsError(
                    f"{place} is an Iceberg table in which column {field.name!r} was renamed or "
                    "made anew: files written before call it otherwise. Write the table anew, for "
                    "example as Parquet."
                )


def _metadata_files(place: Any) -> list[Any]:
    folder = place / ICEBERG_LOG
    if isinstance(place, StorePath):
        found = (name for name in names_below(place) if name.startswith(f"{ICEBERG_LOG}/"))
        return [place / name for name in found if name.endswith(METADATA)]
    return sorted(folder.glob(f"*{METADATA}")) if folder.is_dir() else []


def _newest(place: Any) -> Any:
    """The newest metadata of a table: the largest version number."""
    numbered: dict[int, list[Any]] = {}
    for file in _metadata_files(place):
        number = re.match(r"v?(\d+)", file.name)
        numbered.setdefault(int(number[1]) if number else -1, []).append(file)
    newest = numbered[max(numbered)]
    if len(newest) > 1:
        raise BadRowsError(
            f"{place} is an Iceberg table with several metadata files of the same version "
            f"({', '.join(file.name for file in newest)}), of which its catalog knows the right "
            "one; give that file instead of the folder."
        )
    return newest[0]


def _with_options(file: str, table: Any) -> str:
    """Name of a live file: local, or a URI with the options of the table's."""
    place = as_place(file)
    if isinstance(place, StorePath) and isinstance(table, StorePath):
        return str(replace(place, query=table.query))
    return str(place)


def table_above(names: Iterable[str]) -> str | None:
    """Folder, among those that files of a listing are in, that is a Delta table; None if none."""
    for name in names:
        parts = PurePosixPath(name).parts
        if DELTA_LOG in parts:
            return str(PurePosixPath(*parts[: parts.index(DELTA_LOG)]))
    return None
