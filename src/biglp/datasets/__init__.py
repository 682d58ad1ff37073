"""The paper's data sets: fetched, checked, converted once, and split as the paper does.

>>> from biglp import datasets
>>> datasets.names()[:3]
['hepmass', 'hepmass-all', 'susy']

``datasets.fetch("susy")`` downloads one, ``datasets.load("susy")`` opens it.
"""

from __future__ import annotations

from biglp.datasets.deforming import deform
from biglp.datasets.fetching import fetch
from biglp.datasets.loading import Dataset, Split, load
from biglp.datasets.places import where
from biglp.datasets.registry import names

__all__ = ["Dataset", "Split", "deform", "fetch", "load", "names", "where"]
