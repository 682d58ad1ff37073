"""Landmarks near a row's cell against all landmarks."""

import numpy as np
import pytest

import reference as ref
from biglp._engines import SerialEngine, ThreadEngine
from biglp._lowrank.cells import Cells
from biglp._lowrank.kmeans import Lloyd, cells_of, kmeans_start
from helpers import blocks_of


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, 12))
    return (centres[rng.integers(60, size=6000)] + 0.4 * rng.normal(size=(6000, 12))).astype("f4")


def test_nearly_all_rows_get_their_nearest_landmark(rows):
    landmarks = rows[::5]
    columns, values = Cells.of(landmarks).nearest(rows)
    squared = ref.squared_distances(rows, landmarks)
    assert (columns[:, 0] == squared.argmin(axis=1)).mean() > 0.97
    found = np.maximum(values[:, 0] + np.einsum("ij,ij->i", rows, rows), 0.0)
    taken = squared[np.arange(len(rows)), columns[:, 0]]
    np.testing.assert_allclose(found, taken, atol=1e-3)
    assert found.sum() < 1.01 * squared.min(axis=1).sum()


def test_a_landmark_far_out_keeps_its_rows(rows):
    far = rows.copy()
    far[:40] *= 50.0
    landmarks = far[::3]
    columns, _ = Cells.of(landmarks).nearest(far[:40:3])
    np.testing.assert_array_equal(columns[:, 0], np.arange(14))


def test_lloyd_in_cells_is_nearly_as_good(rows):
    start = kmeans_start(rows, 1000, seed=0)
    assert cells_of(start) is not None
    assert cells_of(start[:999]) is None
    found = {}
    for in_cells in (False, True):
        lloyd = Lloyd(SerialEngine(), rows[:50], max_iter=2, tol=-1.0, in_cells=in_cells)
        centres, _ = lloyd.run(blocks_of(rows, 2000), start)
        found[in_cells] = ref.squared_distances(rows, centres).min(axis=1).sum()
    assert found[True] < 1.02 * found[False]


def test_threads_change_nothing(rows):
    start = kmeans_start(rows, 1000, seed=0)
    np.testing.assert_array_equal(kmeans_start(rows, 1000, seed=0, n_threads=3), start)
    one, _ = Lloyd(SerialEngine(), max_iter=2, in_cells=True).run(blocks_of(rows, 1500), start)
    two, _ = Lloyd(ThreadEngine(2), max_iter=2, in_cells=True).run(blocks_of(rows, 1500), start)
    np.testing.assert_array_equal(one, two)
