"""Choosing experiments by name."""

from paper import commands as experiments


def test_all_is_every_experiment(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(experiments, "_run", lambda name, *_: ran.append(name) or [])
    experiments.run_experiments("all", tmp_path, quick=True, say=print)
    assert tuple(ran) == experiments.EXPERIMENTS
