"""``python -m paper reproduce``: what it refuses; tests/experiments runs each experiment."""

import sys

from cli_tools import failed


def test_an_unknown_experiment_is_refused(tmp_path):
    message = failed(2, "reproduce", "everything", "-o", tmp_path / "out", program="paper")
    assert "tables, runtime, memory, convergence, scale or all" in message


def test_missing_matplotlib_gives_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = failed(6, "reproduce", "tables", "-o", tmp_path / "out", program="paper")
    assert 'pip install "biglp[plot]"' in message
