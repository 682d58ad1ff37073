"""A column of sentences: how often each word is in them, as sparse features.

Words become features by a hash of the word (scikit-learn's ``HashingVectorizer``), so that nothing
has to be learnt or kept, and a new file is treated as the first one was.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from biglp._core.arrays import Rows
from biglp._sources.tables.arrow_columns import content_of, text
from biglp._sources.tables.kinds.base import Column

N_WORDS = 1 << 18
"""Features of the words of one column; words that share one are few among those that are used."""


@dataclass(frozen=True)
class Words(Column):
    """Counts of words; a missing text has none.

    Attributes
    ----------
    n_words : int
        Number of features.
    """

    kind = "words"
    expects = "texts"
    sparse: ClassVar[bool] = True
    n_words: int = N_WORDS

    @property
    def feature_names(self) -> tuple[str, ...]:
        """None: a hash has no word."""
        return ()

    @property
    def width(self) -> int:
        """Number of features."""
        return self.n_words

    def describe(self) -> str:
        """Say what is counted."""
        return "text: its words are counted"

    def takes(self, kind: Any) -> bool:
        """Text only."""
        return content_of(kind) in ("text", "nothing")

    def read_as(self, found: Any) -> Any:
        """Text as it is written."""
        return pa.string()

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Refuse: words are sparse."""
        raise TypeError("counts of words are sparse")

    def sparse_rows(self, values: Any) -> Rows:
        """Counts of the words of each row, a CSR matrix.  (rows, width)."""
        sentences = ["" if value is None else value for value in text(values).to_pylist()]
        return _vectorizer(self.n_words).transform(sentences)


@lru_cache
def _vectorizer(n_words: int) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=n_words, alternate_sign=False, norm=None, dtype=np.float32)
