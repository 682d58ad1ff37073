"""Answers in memory."""

from __future__ import annotations

import numpy as np

from biglp._output import ArraySink
from sink_tools import N, answers, fill


def test_array_sink(classes):
    given = answers(len(classes))
    sink = ArraySink(classes, N, given.dtype)
    fill(sink, given)
    assert sink.labels.tolist() == classes[given.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(sink.probabilities, given)
