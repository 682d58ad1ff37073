"""Tables as they are, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli_tools import done, failed
from made_tables import articles, some_labels


def test_text_on_the_command_line(here):
    frame, topic = articles()
    frame["label"] = some_labels(topic, 40)
    frame.to_csv("x.csv", index=False)
    shown = done("inspect", "x.csv", "--label-column", "label", "--text", "text").stdout
    assert "its words are counted" in shown
    fit = ("fit", "x.csv", "--label-column", "label", "--text", "text", "--columns", "text")
    done(*fit, "-o", "out")
    done("predict", "out/model.biglp", "x.csv", "-o", "new.npy")
    assert (np.load("new.npy").astype(int) == topic).mean() > 0.85


def test_predict_tells_drift(here):
    frame, topic = articles()
    frame["label"] = some_labels(topic, 40)
    frame.to_parquet("x.parquet")
    done("fit", "x.parquet", "--label-column", "label", "-o", "out", "-q")
    done("predict", "out/model.biglp", "x.parquet", "-o", "same", "-q")
    drift = json.loads(Path("same/summary.json").read_text())["drift"]
    assert drift["columns"] == {}
    assert drift["far_rows"] < 0.1
    new = frame[["plan", "size"]].copy()  # another order, and a column less that is not used
    new.loc[:99, "plan"] = "gold"
    new.loc[100:199, "plan"] = None
    new["size"] += 100
    new.to_csv("new.csv", index=False)
    shown = done("predict", "out/model.biglp", "new.csv", "-o", "new")
    drift = json.loads(Path("new/summary.json").read_text())["drift"]
    assert drift["rows"] == 300
    assert drift["columns"]["plan"] == {
        "unknown": 0.333333,
        "examples": ["gold"],
        "missing": 0.333333,
        "missing_before": 0.0,
    }
    assert drift["columns"]["size"]["outside"] == 1
    assert drift["far_rows"] == 1
    assert "33% have unknown categories in 'plan' ('gold')" in shown.stderr


@pytest.mark.parametrize("header", ["key,y", "y"])
@pytest.mark.parametrize("kind", ["text", "number"])
def test_a_table_without_a_feature_is_refused_alike_everywhere(here, header, kind):
    ids = header.startswith("key")
    own = "k" if kind == "text" else ""
    lines = [f"{own}{at}," * ids + "ab"[at % 2] for at in range(50)]
    Path("x.csv").write_text("\n".join([header, *lines]) + "\n")
    given = ("x.csv", "--label-column", "y", *(("--id-column", "key") if ids else ()))
    for command in (
        ("fit", *given, "-o", "out"),
        ("fit", *given, "-o", "out", "--dry-run"),
        ("label", *given, "--no-browser"),
        ("inspect", *given),
        ("suggest", *given),
    ):
        message = failed(3, *command)
        assert "x.csv has no column that can be a feature: all it has" in message
        assert "'y'" in message
        assert "--drop" in message
