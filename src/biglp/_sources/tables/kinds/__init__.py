"""Kinds of columns: one class for each way in which a column becomes features, and one line here.

The name stands in model files, so that it must not change. A kind's module, and pyarrow with it, is
loaded when a table is opened or a model of one is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biglp._core.registry import Registry

if TYPE_CHECKING:
    from biglp._sources.tables.kinds.base import Column

_HERE = "biglp._sources.tables.kinds"
KINDS: Registry[type[Column]] = Registry(
    {
        "date": f"{_HERE}.date:Date",
        "frequency": f"{_HERE}.frequency:Frequency",
        "number": f"{_HERE}.number:Number",
        "embedding": f"{_HERE}.embedding:Embedding",
        "onehot": f"{_HERE}.onehot:OneHot",
        "words": f"{_HERE}.words:Words",
    }
)
