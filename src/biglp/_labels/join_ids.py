"""Labels joined to rows by an ID.

The labels are few and in memory; the rows' IDs are streamed past them, some millions at a time,
and looked up by pyarrow's ``index_in``, which hashes the labels' IDs. So memory depends on the
number of labels and not on the number of rows, no Python object is made for a row, and the column
of IDs is read once. (Sorting 10⁸ IDs on disk and merging would read and write them several times.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.errors import LabelError, ParameterError
from biglp._labels.reading import LabelCodes
from biglp._rows.source import some
from biglp._tables.side_columns import RowColumn

LOOKED_UP_BYTES = 128 << 20
"""IDs that are looked up at once. Each time the labels' IDs are hashed again, which takes a second
for a million of them."""
LOOKED_UP_SHARE, LEAST_LOOKED_UP = 16, 8 << 20
"""Of a small budget a part, as looking up takes two or three times the IDs; so much at least."""
SHOWN = 5


class Joined(NamedTuple):
    """Rows, increasing, codes of their labels, (l,) each, and weights or None.

    ``unknown`` are IDs of labels that no row has, ``repeated`` IDs that several rows have.
    """

    rows: np.ndarray
    codes: np.ndarray
    weights: np.ndarray | None
    unknown: list[Any]
    repeated: list[Any]


def join_ids(codes: LabelCodes, row_ids: RowColumn, memory: int | None = None) -> Joined:
    """Find the rows of labels by their IDs; every row that has an ID gets its labels."""
    as_numbers = _are_numbers(row_ids)
    given = pa.chunked_array([_comparable(part, as_numbers) for part in codes.ids])
    shown = pa.chunked_array([part.cast(pa.string()) for part in codes.ids])
    encoded = given.dictionary_encode().combine_chunks()
    of_label = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    distinct = encoded.dictionary
    # Rows that have one of the IDs, and which.
    found_rows, found_ids, start = [np.empty(0, np.int64)], [np.empty(0, np.int32)], 0
    share = LOOKED_UP_BYTES if memory is None else max(memory // LOOKED_UP_SHARE, LEAST_LOOKED_UP)
    for chunk in _chunks(row_ids, as_numbers, min(LOOKED_UP_BYTES, share)):
        looked_up = pc.index_in(chunk, value_set=distinct, skip_nulls=True)
        indices = np.concatenate([part.fill_null(-1).to_numpy() for part in looked_up.chunks])
        known = np.flatnonzero(indices >= 0)
        found_rows.append(start + known)
        found_ids.append(indices[known])
        start += len(indices)
    rows, of_row = np.concatenate(found_rows), np.concatenate(found_ids)
    pa.default_memory_pool().release_unused()  # the fit wants it
    times = np.bincount(of_row, minlength=len(distinct))
    lost = np.flatnonzero((of_label < 0) | (times[of_label] == 0))
    unknown = pc.unique(shown.take(pa.array(lost))).to_pylist()
    if not len(rows) and len(of_label):
        row_examples = next(iter(row_ids.pieces()))[:SHOWN].to_pylist()
        raise LabelError(
            f"none of the {len(distinct):,} IDs in {codes.name} ({some(unknown, SHOWN)}) is in "
            f"column {row_ids.name!r} of {row_ids.table.name} ("
            f"{some(row_examples, SHOWN)}); name the column that holds these IDs with "
            "id_column= (--id-column)."
        )
    # The labels of each ID lie together, so that a row takes a slice of them.
    order = np.argsort(of_label, kind="stable")
    starts = np.searchsorted(of_label[order], np.arange(len(distinct) + 1))
    sizes = np.diff(starts)[of_row]
    label = np.repeat(starts[of_row] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    chosen, weights = order[label], codes.weights
    return Joined(
        np.repeat(rows, sizes),
        codes.codes[chosen],
        None if weights is None else weights[chosen],
        unknown,
        repeated=distinct.take(pa.array(np.flatnonzero(times > 1))).to_pylist(),
    )


def _chunks(row_ids: RowColumn, as_numbers: bool, most: int) -> Iterator[Any]:
    """The rows' IDs, about so many bytes at a time."""
    pieces, size = [], 0
    for piece in row_ids.pieces():
        pieces.append(_comparable(piece, as_numbers))
        size += pieces[-1].nbytes
        if size >= most:
            yield pa.chunked_array(pieces)
            pieces, size = [], 0
    if pieces:
        yield pa.chunked_array(pieces)


def _are_numbers(row_ids: RowColumn) -> bool:
    """Whether the rows' IDs are compared as numbers, and not as text."""
    kind = row_ids.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return bool(kind != pa.uint64())
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if text or str(kind) == "string_view" or kind == pa.uint64():
        return False
    raise ParameterError(
        f"id_column={row_ids.name!r} of {row_ids.table.name} holds {kind}; IDs must be whole "
        "numbers or text."
    )


def _comparable(ids: Any, as_numbers: bool) -> Any:
    """IDs as int64 or as text; null where they are neither."""
    kind = ids.type.value_type if pa.types.is_dictionary(ids.type) else ids.type
    if ids.type != kind:
        ids = ids.cast(kind)
    if pa.types.is_floating(kind):  # whole numbers among which some are missing, in pandas
        whole = pc.and_(pc.is_finite(ids), pc.equal(ids, pc.floor(ids)))
        ids = pc.if_else(whole, ids, None).cast(pa.int64())
    elif not pa.types.is_integer(kind):
        ids = pc.utf8_trim_whitespace(ids.cast(pa.string()))
    if not as_numbers:
        return ids.cast(pa.string())
    if pa.types.is_string(ids.type):
        plain = pc.replace_substring_regex(ids, r"\.0*$", "")
        ids = pc.if_else(pc.match_substring_regex(plain, r"^[+-]?\d{1,18}$"), plain, None)
    return ids.cast(pa.int64(), safe=False)
