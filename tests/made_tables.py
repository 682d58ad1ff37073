"""Small tables that tests make."""

import numpy as np
import pandas as pd

TOPICS = ("ball goal team match win", "bank share price market fund", "star moon orbit probe sun")


def articles(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    topic = rng.integers(3, size=n)
    words = [" ".join(rng.choice(TOPICS[t].split(), 6)) for t in topic]
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "text": [f"{text} and word{i % 50}" for i, text in enumerate(words)],
            "plan": np.resize(["a", "b", "c"], n),
        }
    )
    return frame, topic


def some_labels(truth: np.ndarray, count: int) -> np.ndarray:
    rows = np.random.default_rng(1).choice(len(truth), count, replace=False)
    labels = np.full(len(truth), -1)
    labels[rows] = truth[rows]
    return labels
