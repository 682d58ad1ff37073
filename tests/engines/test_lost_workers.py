"""A whole fit while Dask workers are killed at random moments: the same labels as without."""

import pytest

from campaign import lost


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")  # GLNP stops early
def test_same_labels_while_workers_are_killed(tmp_path):
    pytest.importorskip("distributed")
    assert lost.workers(1, tmp_path) == lost.ATTACKS
