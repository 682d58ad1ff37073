"""What decoding an input takes of memory, measured."""

from __future__ import annotations

DECODED_BYTES = 72 << 20
"""pyarrow, and what its allocator keeps after a table was decoded."""
COLUMN_BYTES = 800 << 10
"""What decoding holds of each column of a table."""
SPARSE_BYTES = 160 << 20
"""scikit-learn, and pieces of text while LIBSVM is decoded."""


def table_bytes(n_rows: int, n_columns: int, page_bytes: int = 0) -> int:
    """What decoding a table takes: pieces of every column, of a small table all of it.

    Parameters
    ----------
    n_rows, n_columns : int
    page_bytes : int
        What the file's format makes decoding hold of each column besides.
    """
    return DECODED_BYTES + (min(COLUMN_BYTES, 64 * n_rows) + page_bytes) * n_columns
