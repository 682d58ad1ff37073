"""``biglp bench``: what it refuses; tests/experiments/test_peers.py runs it."""

from cli_tools import failed


def test_bad_sizes_are_explained(tmp_path):
    assert "--sizes" in failed(2, "peers", "--sizes", "many", "-o", tmp_path, program="paper")
