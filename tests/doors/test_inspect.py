"""``biglp inspect``: what it finds in files, and how near its estimates are."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from biglp._engines import make_engine
from biglp._fit import Pipeline
from biglp._jobs import FitJob, Trials
from biglp._rows import InputFiles, ReadOptions, as_source
from cli_tools import done
from made_tables import articles, some_labels


def test_inspect_table(here, connections):
    facts = json.loads(done("inspect", connections, "--label-column", "class", "--json").stdout)
    assert facts["format"] == "Parquet"
    assert facts["rows"] == 2000
    assert facts["columns"]["service"]["use"] == "one feature for each of 4 categories"
    assert facts["columns"]["class"] == {
        "type": "string",
        "missing": 0,
        "feature": False,
        "use": "the label",
    }
    assert facts["columns"]["bytes"]["missing"] == 21
    assert set(facts["labels"]) == {"normal.", "smurf.", "neptune."}
    text = done("inspect", connections, "--label-column", "class").stdout
    assert "one feature for each of 4 categories" in text
    assert "marked by a second feature" in text
    assert "2,000 rows × 8 features" in text


def test_a_table_of_free_text_alone(here):
    """Its words are counted without being asked for, and that is said."""
    frame, topic = articles(200)
    frame = frame[["text"]].assign(number=np.arange(200), topic=some_labels(topic, 40))
    frame.to_csv("news.csv", index=False)
    arguments = ("news.csv", "--label-column", "topic", "--text-model", "none")
    found = json.loads(done("inspect", *arguments, "--json").stdout)
    assert found["columns"]["text"]["use"].startswith("text: its words are counted")
    assert found["columns"]["number"]["use"] == "left out: it counts the rows"
    assert found["methods"][0]["seconds"] > 0
    shown = done("fit", *arguments, "-o", "out").stdout
    assert "Words are counted in text" in shown
    assert (pq.read_table("out/labels.parquet")["label"].to_numpy() == topic).mean() > 0.85


def test_a_table_without_features(here):
    """What is done with its columns is shown all the same; fit refuses it."""
    frame = pd.DataFrame({"name": [f"row {n}" for n in range(100)], "y": ["a", "b"] * 50})
    frame.to_csv("names.csv", index=False)
    found = json.loads(done("inspect", "names.csv", "--label-column", "y", "--json").stdout)
    assert found["columns"]["name"]["use"].startswith("left out: 100% of its texts are different")
    assert found["labels"].keys() == {"a", "b"}
    assert (found["features"], found["methods"]) == (0, [])
    shown = " ".join(done("inspect", "names.csv", "--label-column", "y").stdout.split())
    assert "No method can be tried: names.csv has no column that can be a feature" in shown


def test_sweeps_visit_a_part_of_the_rows_and_memory_is_that_of_the_fit(here):
    """What a fit takes, and how its rows are cut, is said by its own plan."""
    n_rows = 400_000
    done("simulate", n_rows, 5, "-o", "sim.npy", "-q")
    for factor, budget in (("nystrom", "150MB"), ("anchors", "1GB")):
        parameters = {"factor": factor, "memory": budget, "n_landmarks": 60}
        job = FitJob(("sim.npy",), Path("out"), labels=("sim.labels.npy",), parameters=parameters)
        labels = job.label_input.gather(n_rows).labels
        with make_engine("threads", 2) as engine:
            source, settings = as_source("sim.npy"), job.settings()
            expected = Pipeline(engine, settings).prepare(source, labels, *job.costs).plan
            looked = InputFiles("sim.npy").probe(ReadOptions(), n_rows // 4)
            found = Trials(engine, looked, labels).estimate(settings, *job.costs)
            assert found.plan == expected
            swept = engine.progress.steps["Gram"]
            assert 0 < swept.rows < n_rows / 2
        assert found.steps.keys() >= expected.seconds.keys()
        assert all((seconds >= 0).all() for seconds in found.steps.values())
