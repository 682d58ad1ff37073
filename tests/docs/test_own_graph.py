"""The page on graphs of one's own: its example runs, and is as good as it should be."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "own-graph.md"


def test_the_example_runs():
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    found = {}
    exec(code, found)
    assert found["accuracy"] > 0.9
    assert found["model"].report_["labelled_rows"] == 60
