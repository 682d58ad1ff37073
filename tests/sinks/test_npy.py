"""Answers in .npy files: at their place, from any process, on disks of every temper."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

import biglp._output.npy as npy_sink
from biglp._core.errors import OutputError
from biglp._output import NpySink
from sink_tools import ALL, N, answers, broken, fill


def test_npy_sink(tmp_path, classes):
    given = answers(len(classes))
    with NpySink(tmp_path / "out", N, classes, ALL) as sink:
        fill(sink, given)
        assert not any(path.suffix == ".npy" for path in (tmp_path / "out").iterdir())
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["confidence.npy", "labels.npy", "probabilities.npy"]
    labels = np.load(tmp_path / "out" / "labels.npy")
    assert labels.tolist() == classes[given.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "confidence.npy"), given.max(axis=1))
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "probabilities.npy"), given)


def test_earlier_answers_stay_until_the_new_ones_are_whole(tmp_path):
    with NpySink(tmp_path, 2, [0, 1]) as sink:
        sink.write(0, {"label": np.array([0, 0])})
    with pytest.raises(ZeroDivisionError):
        broken(NpySink(tmp_path, 2, [0, 1]), answers(2)[:2])
    assert np.load(tmp_path / "labels.npy").tolist() == [0, 0]


def test_copies_in_other_processes_write_to_the_same_files(tmp_path):
    given = answers(2)
    with NpySink(tmp_path, N, [0, 1], ("probabilities",)) as sink:
        copy = pickle.loads(pickle.dumps(sink))
        sink.write(0, given[:400])
        copy.write(400, given[400:])
        copy.close()
    np.testing.assert_array_equal(np.load(tmp_path / "probabilities.npy"), given)


def test_disk_that_fills_up_in_the_middle(tmp_path, monkeypatch):
    def full(handle, data, position):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(npy_sink.os, "pwrite", full)
    with (
        pytest.raises(OutputError, match=r"labels\.npy could not be written: No space left"),
        NpySink(tmp_path, N, [0, 1]) as sink,
    ):
        sink.write(0, answers(2))
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path, monkeypatch):
    plain = os.pwrite
    monkeypatch.setattr(npy_sink.os, "pwrite", lambda h, data, at: plain(h, bytes(data)[:37], at))
    given = answers(2)
    with NpySink(tmp_path, N, [0, 1], ("probabilities",)) as sink:
        fill(sink, given)
    np.testing.assert_array_equal(np.load(tmp_path / "probabilities.npy"), given)


def test_systems_that_cannot_reserve(tmp_path, monkeypatch):
    def unable(handle, start, size):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(npy_sink.os, "posix_fallocate", unable)
    with NpySink(tmp_path, 2, [0, 1]) as sink:
        sink.write(0, {"label": np.array([1, 0])})
    assert np.load(tmp_path / "labels.npy").tolist() == [1, 0]
