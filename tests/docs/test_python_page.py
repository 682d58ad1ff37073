"""The page about Python: its code runs, and it names all that is public."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import biglp
from biglp._graph import FACTORS
from helpers import blobs, measured_problem, regressor

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")


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


def keys_of(report):
    for key, value in report.items():
        yield key
        if key not in ("left_out_columns", "recall"):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, dict):
                    yield from keys_of(part)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
def test_first_hour_10_every_key_of_the_report_is_on_the_page():
    X, y, _ = blobs(n=150, labelled=60)
    table = np.column_stack([X, np.exp(3 * X[:, 0]), X[:, 1] > 0])
    ties = (np.abs(X[:, :1] - X[:, 0]) < 0.3).astype(float)
    settings = [
        ({}, table),
        ({"projection": 2}, X),
        *(({"factor": factor}, np.abs(X)) for factor in FACTORS if factor != "precomputed"),
        ({"factor": "precomputed"}, ties),
        ({"filter": "poisson"}, X),
        ({"filter": "poisson", "class_balance": "share"}, X),
    ]
    found = set()
    for parameters, rows in settings:
        made = biglp.LowRankLabelPropagation(engine="serial", **parameters)
        found |= set(keys_of(made.fit(rows, y).report_))
    digits, truth = load_digits(return_X_y=True)
    labelled = (np.arange(len(truth)) < 80) & ~np.isin(truth, (0, 6))  # two classes have none
    unseen = np.where(labelled, truth, -1)
    found |= set(keys_of(biglp.LowRankLabelPropagation().fit(digits, unseen).report_))
    rows, targets, *_ = measured_problem()
    found |= set(keys_of(regressor(alpha="auto").fit(rows, targets).report_))
    assert {"ties", "objective", "share", "two_valued", "gain", "error"} <= found
    described = PAGE[PAGE.index("## The report") :]
    assert {key for key in found if f"`{key}`" not in described} == set()
    named = set(re.findall(r"`([a-z_]+)`", re.sub(r"(?m)^(?!\| `).*$", "", described)))
    # A method, and a key of fits that are large enough for compiled loops.
    assert named - found - {"update_labels", "sweeps"} == set()
