"""Where rows come from. :func:`as_source` is the only way in.

=====================  ================================================================
``array``, CSR, frame  in memory
dask array, frame      chunk by chunk, where they are (:mod:`.formats.dask`)
files, ``sim:…``       one module for each format (:mod:`.formats` lists them)
=====================  ================================================================

Text and Parquet are converted once to raw rows in a temporary folder (:mod:`.cache`); named columns
become features in :mod:`.tables`. What comes out goes through a chain of transforms
(:mod:`.prepared`).
"""

from __future__ import annotations

from biglp._rows.encoding import Encoding
from biglp._rows.opening import InputFiles, as_source
from biglp._rows.options import ReadOptions
from biglp._rows.prepared import PreparedRows
from biglp._rows.sample import Sample
from biglp._rows.source import Source, working_dtype

__all__ = [
    "Encoding",
    "InputFiles",
    "PreparedRows",
    "ReadOptions",
    "Sample",
    "Source",
    "as_source",
    "working_dtype",
]
