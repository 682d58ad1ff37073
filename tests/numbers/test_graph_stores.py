"""Where features wait between sweeps: what is kept comes back, from any thread or process."""

import errno
import os
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from biglp._graph import FACTORS, DiskStore, MemoryStore, SpillingStore
from helpers import blobs, blocks_of

# A temporary file is closed with the last thing that needs it, and by nobody in particular.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STORES = {"memory": MemoryStore, "disk": DiskStore, "both": lambda: SpillingStore(700)}


def parcels(count=40):
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(i, 3)).astype(np.float32), rng.integers(9, size=i), rng.random(7))
        for i in range(count)
    ]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", STORES)
class TestEveryStore:
    def test_what_is_kept_comes_back_from_any_thread(self, kind):
        store, given = STORES[kind](), parcels()
        with ThreadPoolExecutor(4) as pool:
            kept = list(pool.map(store.keep, given))
            found = list(pool.map(store.load, kept))
        for one, other in zip(found, given, strict=True):
            assert_same(one, other)
        array = np.arange(6.0)
        copied = store.keep((array,))
        array[:] = -1.0
        assert_same(store.load(copied), (np.arange(6.0),))

    def test_another_process_starts_with_an_empty_one(self, kind):
        store = STORES[kind]()
        kept = store.keep(parcels()[5])
        other = pickle.loads(pickle.dumps(store))
        assert_same(other.load(other.keep(parcels()[7])), parcels()[7])
        assert_same(store.load(kept), parcels()[5])

    @pytest.mark.parametrize("factor", [FACTORS["anchors"], FACTORS["nystrom"]])
    def test_features_of_a_block_are_computed_once(self, kind, factor, monkeypatch):
        X, _, _ = blobs(dtype="float32")
        made = factor(X[:9], 0.8)
        made.store = STORES[kind]()
        block = blocks_of(X, 100)[1]
        first = made.block_features(block)
        monkeypatch.setattr(factor, "features", None)  # what is kept is not computed again
        second = made.block_features(block)
        assert type(second) is type(first)
        assert abs(second - first).max() == 0


def stays(store, stored):
    store.load(stored)[0][:] = 7.0
    return bool((store.load(stored)[0] == 7.0).all())


def test_what_has_no_room_in_memory_goes_to_a_file_where_no_change_stays():
    store = SpillingStore(100)
    stored = [store.keep((np.full(10, i, dtype=np.float64),)) for i in range(3)]
    assert [stays(store, one) for one in stored] == [True, False, False]
    assert_same(store.load(stored[2]), (np.full(10, 2.0),))
    assert stays(store, store.keep((np.zeros(2),)))
    assert not stays(store, store.keep((np.zeros(1),)))
    elsewhere = pickle.loads(pickle.dumps(SpillingStore(1 << 20)))
    assert not stays(elsewhere, elsewhere.keep((np.zeros(3),)))  # a worker spills everything


class TestDisk:
    def test_a_full_disk_means_computing_again(self, monkeypatch):
        calls = []

        def full(*args):
            calls.append(args)
            raise OSError(errno.ENOSPC, "No space left on device")

        store = DiskStore()
        before = store.keep((np.ones(3),))
        monkeypatch.setattr(os, "pwrite", full)
        assert store.keep((np.ones(3),)) is None
        assert store.keep((np.ones(3),)) is None
        assert len(calls) == 1  # it is not tried again
        assert_same(store.load(before), (np.ones(3),))

        def failing(*args):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "pwrite", failing)
        with pytest.raises(OSError, match="Input/output"):
            DiskStore().keep((np.ones(3),))

    def test_short_writes_and_reads_are_continued(self, monkeypatch):
        write, read = os.pwrite, os.preadv
        monkeypatch.setattr(os, "pwrite", lambda h, data, at: write(h, data[:37], at))
        monkeypatch.setattr(os, "preadv", lambda h, buffers, at: read(h, [buffers[0][:29]], at))
        store, given = DiskStore(tempfile.gettempdir()), parcels()[30]
        assert_same(store.load(store.keep(given)), given)
