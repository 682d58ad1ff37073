"""The paper's data sets: fetched, checked, converted once, and split as the paper does.

>>> from biglp import datasets
>>> datasets.names()[:3]
['hepmass', 'hepmass-all', 'susy']

``datasets.fetch("susy")`` downloads one, ``datasets.load("susy")`` opens it.
"""

from __future__ import annotations

from paper.datasets.deforming import deform
from paper.datasets.fetching import fetch
from paper.datasets.loading import Dataset, Split, load
from paper.datasets.registry import names, where

__all__ = ["Dataset", "Split", "deform", "fetch", "load", "names", "where"]
