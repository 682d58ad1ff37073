"""The page about Python: its code runs, and it names all that is public."""

import inspect
import re
from pathlib import Path

import pytest

import biglp

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
def test_first_hour_4_the_example_of_cross_validation_runs():
    found: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(block, found)
    assert len(found["scores"]) == 3
    assert found["scores"].mean() > 0.7  # .04 when unlabelled rows were scored
    assert found["search"].best_score_ >= 0.7
    assert (found["labels"] == found["truth"]).mean() > 0.8


def test_every_public_name_is_on_the_page():
    assert [name for name in biglp.__all__ if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("name", ["LowRankLabelPropagation", "LowRankLabelPropagationRegressor"])
def test_every_public_method_is_on_the_page(name):
    methods = inspect.getmembers(getattr(biglp, name), callable)
    public = {method for method, _ in methods if not method.startswith("_")}
    assert {method for method in public if not re.search(rf"`{method}\b", PAGE)} == set()
