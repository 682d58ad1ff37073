"""Dask arrays and data frames as X: on threads, and where they live on the workers of a cluster."""

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from biglp._core import BadRowsError
from biglp._rows import as_source
from helpers import blobs, model

pytest.importorskip("distributed")


pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.UnlikeLabelsWarning")


X, Y, _ = blobs(n=1000, features=6, labelled=30, dtype=np.float32)


SETTINGS = {"factor": "anchors", "landmarks": "kmeans-full", "n_landmarks": 12}


@pytest.fixture(scope="module")
def client():
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def expected():
    return model(**SETTINGS).fit(X, Y).label_distributions_


def test_rows_are_those_of_the_array():
    source = as_source(da.from_array(X, chunks=(170, 4)))
    assert (source.n_rows, source.n_features, source.dtype) == (1000, 6, X.dtype)
    for start, stop in ((0, 1000), (169, 171), (170, 340), (999, 1000)):
        assert np.array_equal(source.read(start, stop), X[start:stop])
    chosen = np.array([0, 3, 169, 170, 998])
    assert np.array_equal(source.take(chosen), X[chosen])
    rows = da.from_array(X, chunks=(300, 6))
    rows = rows[rows[:, 0] > 0]  # chunks of unknown length are counted
    with dask.config.set(scheduler="sync"):
        assert as_source(rows).n_rows == (X[:, 0] > 0).sum()
    with pytest.raises(BadRowsError, match="give a dask array or a dask data frame"):
        as_source(dask.delayed(X))


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_without_a_cluster(engine, expected):
    rows = da.from_array(X, chunks=(300, 6))
    with dask.config.set(scheduler="threads"):
        fitted = model(**SETTINGS, engine=engine).fit(rows, Y)
    assert fitted.label_distributions_.tobytes() == expected.tobytes()
    assert fitted.predict(rows[:10]).shape == (10,)


@pytest.mark.parametrize("persisted", [True, False])
def test_on_the_workers_that_hold_it(client, expected, persisted):
    with client.as_current():
        rows = da.from_array(X, chunks=(250, 6))
        rows = rows.persist() if persisted else rows + 0
        fitted = model(**SETTINGS, engine=client).fit(rows, Y)
    assert fitted.label_distributions_.tobytes() == expected.tobytes()


def test_data_frames(client, expected):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with client.as_current():
        fitted = model(**SETTINGS, engine=client).fit(dd.from_pandas(frame, npartitions=3), Y)
    assert fitted.label_distributions_.tobytes() == expected.tobytes()
    frame["g"] = "text"
    with pytest.raises(BadRowsError, match="has other values in g"):
        as_source(dd.from_pandas(frame, npartitions=3))
