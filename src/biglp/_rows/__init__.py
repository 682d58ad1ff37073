"""Where rows come from. :func:`as_source` is the only way in.

=====================  ================================================================
``array``, CSR, frame  in memory
dask array, frame      chunk by chunk, where they are (:mod:`.dask`)
files, ``sim:…``       by their format (:mod:`.format` lists them)
=====================  ================================================================

Text and Parquet are converted once to raw rows in a temporary folder (:mod:`.cache`); named columns
become features in ``_tables``. What comes out goes through a chain of transforms.
A new format is a subclass of :class:`Format`, made known by :func:`register`.
"""

from __future__ import annotations

from biglp._rows.format import Format, register, unregister
from biglp._rows.opening import InputFiles, as_source
from biglp._rows.options import ReadOptions
from biglp._rows.prepared import PreparedRows, Sample
from biglp._rows.source import Encoding, Source, working_dtype

__all__ = [
    "Encoding",
    "Format",
    "InputFiles",
    "PreparedRows",
    "ReadOptions",
    "Sample",
    "Source",
    "as_source",
    "register",
    "unregister",
    "working_dtype",
]
