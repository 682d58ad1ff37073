"""``biglp fit`` with weights: in a table, in a file, and what makes another run."""

import json

import numpy as np

from biglp import LowRankLabelPropagation
from biglp._jobs.fit import FitJob
from cli_tools import done, failed
from helpers import soft_problem, write_weighted_table


def test_weights_in_a_table_are_no_feature_and_weigh_the_labels(tmp_path):
    X, y, _, weights, _ = soft_problem()
    write_weighted_table(tmp_path / "rows.csv", X, y, weights)
    parameters = {"factor": "anchors", "alpha": 0.9, "class_balance": "none", "n_landmarks": 20}
    job = FitJob(
        (str(tmp_path / "rows.csv"),),
        tmp_path / "out",
        outputs=("label", "probabilities"),
        output_format="npy",
        label_column="y",
        weight_column="w",
        parameters={**parameters, "clamp": "hard"},
    )
    summary = job.run()
    assert summary["features"] == 5
    assert sum(summary["given"].values()) == (y >= 0).sum()
    direct = LowRankLabelPropagation(**parameters, clamp="hard", engine="serial")
    direct.fit(X, y, sample_weight=weights)
    found = np.load(tmp_path / "out" / "probabilities.npy")
    np.testing.assert_allclose(found, direct.label_distributions_, atol=1e-6)
    plain = LowRankLabelPropagation(**parameters, engine="serial").fit(X, y)
    assert np.abs(found - plain.label_distributions_).max() > 0.01
    saved = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert saved["run"]["labels"]["weight column"] == "w"


def test_weights_clamping_and_filters_from_the_command_line(tmp_path):
    X, y, _, weights, _ = soft_problem()
    write_weighted_table(tmp_path / "rows.csv", X, y, weights)
    common = ["fit", tmp_path / "rows.csv", "--label-column", "y", "-k", 20, "--quiet"]
    done(*common, "--weight-column", "w", "-o", tmp_path / "a", "--clamp", "hard")
    done(*common, "--weight-column", "w", "-o", tmp_path / "b", "--filter", "poisson")
    summaries = [json.loads((tmp_path / name / "summary.json").read_text()) for name in "ab"]
    assert [summary["features"] for summary in summaries] == [5, 5]
    assert summaries[0]["run"]["option"]["clamp"] == "hard"
    assert summaries[1]["settings"]["filter"] == "poisson"
    planned = done(*common[:-1], "--weight-column", "w", "-o", tmp_path / "c", "--dry-run")
    assert "× 5 features" in " ".join(planned.output.split())
    looked = done("inspect", tmp_path / "rows.csv", "--label-column", "y", "--weight-column", "w")
    assert "× 5 " in looked.output
    # Without the column of weights it is another run, and one more feature.
    message = failed(5, *common, "-o", tmp_path / "a", "--resume")
    assert "weight column was w and is now" in message


def test_a_file_of_weights_that_changes_makes_another_run(tmp_path):
    X, _, _, _, _ = soft_problem()
    np.save(tmp_path / "rows.npy", X)
    lines = ["row,label,weight", "0,a,1", "1,b,1", "2,a,0.5", "3,b,2"]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    command = ["fit", tmp_path / "rows.npy", "--labels", tmp_path / "labels.csv", "-k", 20, "-q"]
    done(*command, "-o", tmp_path / "out")
    (tmp_path / "labels.csv").write_text("\n".join([*lines[:-1], "3,b,22"]) + "\n")
    assert "labels.csv was" in failed(5, *command, "-o", tmp_path / "out", "--resume")
