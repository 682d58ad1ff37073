"""Choosing experiments by name."""

import sys

from biglp._experiments import all as experiments
from cli_tools import failed


def test_an_unknown_experiment_is_refused(tmp_path):
    message = failed(2, "reproduce", "everything", "-o", tmp_path / "out")
    assert "tables, runtime, memory, convergence, scale or all" in message


def test_missing_matplotlib_gives_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = failed(6, "reproduce", "tables", "-o", tmp_path / "out")
    assert 'pip install "biglp[plot]"' in message


def test_all_is_every_experiment(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(experiments, "_run", lambda name, *_: ran.append(name) or [])
    experiments.reproduce("all", tmp_path, quick=True, say=print)
    assert tuple(ran) == experiments.EXPERIMENTS
