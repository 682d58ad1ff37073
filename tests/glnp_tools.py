"""What the tests of GLNP have in common: rows it suits, and a fit with F at hand."""

import warnings

import numpy as np

from biglp._core import StoppedShortWarning, cut_rows, to_numpy
from biglp._engines import SerialEngine
from biglp._graph import FACTORS
from biglp._graph.graph import TrainingRows
from biglp._rows import PreparedRows, Sample, as_source

SOLVERS = ("gradient", "multiplicative")
STARTS = ("clusters", "uniform")


def some_rows(n=90, m=12, rank=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.random((rank, m)) ** 3
    mix = rng.random((n, rank)) ** 4
    return (mix @ groups + 0.05 * rng.random((n, m))).astype(dtype)


def prepared(X, device="cpu"):
    return PreparedRows(as_source(X), np.dtype(X.dtype), device=device)


def fitted(X, *, k, rows_each=25, engine=None, blocks=None, device="cpu", seed=0, **params):
    source = prepared(X, device)
    blocks = cut_rows(source, rows_each) if blocks is None else blocks
    engine = engine or SerialEngine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedShortWarning)
        factor = FACTORS["glnp"].learn(
            TrainingRows(engine, source, blocks, Sample.of_prepared(source, seed)), k, **params
        )
    return factor, blocks, gathered(factor, blocks, engine)


def gathered(factor, blocks, engine=None):
    engine = engine or SerialEngine()
    return np.concatenate(
        [to_numpy(part) for part in engine.map_blocks(factor.block_features, blocks)]
    )


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)
