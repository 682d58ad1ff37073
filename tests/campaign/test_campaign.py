"""A fixed part of the campaign, which CI runs; the whole is ``make campaign``."""

import subprocess
import sys
from pathlib import Path

import pytest

from campaign.kinds import KINDS
from campaign.runner import Campaign, replay

HERE = Path(__file__).parent


@pytest.mark.timeout(600)
def test_the_part_of_the_campaign_that_ci_runs(tmp_path):
    """In a process of its own: cases are forked from one in which no thread has run yet."""
    command = [sys.executable, str(HERE), "--quick", "--seed", "0", "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in KINDS.values():
        assert f"\n{kind.name:<9} {kind.quick:>6}" in done.stdout


def test_a_failure_is_kept_and_replayed(tmp_path, monkeypatch, capsys):
    def fails(seed, folder):
        (folder / "evidence").write_text("x")
        assert seed != 7, "seven"
        return 2

    kind = KINDS["hostile"]
    monkeypatch.setattr(type(kind), "load", lambda self: fails)
    campaign = Campaign([kind], 6, tmp_path / "out")
    campaign.run(1, 60, {kind.name: 2})
    assert campaign.tried["hostile"] == 3
    assert [(each["kind"], each["seed"]) for each in campaign.failures] == [("hostile", 7)]
    kept = tmp_path / "out" / "failures" / "hostile-7"
    assert "seven" in (kept / "problem.txt").read_text()
    assert (kept / "evidence").exists()
    assert "--replay hostile:7" in campaign.report()
    with pytest.raises(AssertionError, match="seven"):
        replay("hostile:7", tmp_path / "again")
    assert replay("hostile:6", tmp_path / "again") == 0
    assert "survived: 2" in capsys.readouterr().out
