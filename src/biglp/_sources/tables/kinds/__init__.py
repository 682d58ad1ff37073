"""Kinds of columns: one class for each way in which a column becomes features, and one line here.

The name stands in model files, so that it must not change. A kind's module, and pyarrow with it, is
loaded when a table is opened or a model of one is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biglp._core.registry import Registry

if TYPE_CHECKING:
    from biglp._sources.tables.kinds.base import Column

KINDS: Registry[type[Column]] = Registry(
    {
        "date": "biglp._sources.tables.kinds.date:Date",
        "frequency": "biglp._sources.tables.kinds.frequency:Frequency",
        "number": "biglp._sources.tables.kinds.number:Number",
        "embedding": "biglp._sources.tables.kinds.embedding:Embedding",
        "onehot": "biglp._sources.tables.kinds.onehot:OneHot",
        "words": "biglp._sources.tables.kinds.words:Words",
    }
)
