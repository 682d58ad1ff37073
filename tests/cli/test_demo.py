"""``biglp demo``."""

from __future__ import annotations

import json
from pathlib import Path

from cli_tools import done


def test_demo(here):
    result = done("demo")
    assert "scikit-learn LabelSpreading" in result.stdout
    facts = json.loads(done("demo", "--json").stdout)
    assert facts["methods"][0]["accuracy"] > 0.9
    assert Path("demo-out/result/labels.parquet").exists()
