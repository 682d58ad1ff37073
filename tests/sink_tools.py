"""What the tests of sinks have in common: answers, and ways to write them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from biglp._output import Sink

N = 1000
ALL = ("label", "confidence", "probabilities")
CLASSES = {
    "numbers": np.array([3, 5, 9]),
    "texts": np.array(["cat", "dog", "ä"], dtype=object),
    "truth": np.array([False, True]),
}


def answers(n_classes: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(n_classes), size=N).astype(np.float32)


def fill(sink: Sink, probabilities: np.ndarray, rows: int = 64) -> None:
    starts = np.random.default_rng(1).permutation(range(0, len(probabilities), rows))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda s: sink.write(int(s), probabilities[s : s + rows]), starts))


def broken(sink: Sink, probabilities: np.ndarray) -> None:
    with sink:
        fill(sink, probabilities)
        1 / 0  # noqa: B018
