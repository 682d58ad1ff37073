"""Labels that are in the file of the rows: rows that have one are not suggested."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from cli_tools import done, run


@pytest.mark.parametrize("ending", [".libsvm", ".svm", ".svmlight", ".svml"])
def test_labelled_rows_of_libsvm_files_are_not_suggested(tmp_path, ending):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    labels = np.where(np.arange(len(y)) < 30, y[order] + 1, -1)
    path = tmp_path / f"rows{ending}"
    dump_svmlight_file(X[order], labels, str(path), zero_based=False)
    done("fit", path, "-o", tmp_path / "out", "-q")
    model = tmp_path / "out" / "model.biglp"
    done("suggest", path, "--model", model, "-n", 150, "-o", tmp_path / "next.csv", "-q")
    rows = np.loadtxt(tmp_path / "next.csv", delimiter=",", skiprows=1, usecols=0, dtype=int)
    assert sorted(rows) == list(range(30, 150))


def test_a_column_of_labels_beside_a_file_of_labels_is_no_silent_feature(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    lines = [
        f"{rng.normal() + 3 * code:.3f},{'ab'[code] if row < 20 else ''}"
        for row, code in enumerate(codes)
    ]
    path, more = tmp_path / "rows.csv", tmp_path / "more.csv"
    path.write_text("\n".join(["x,label", *lines]) + "\n")
    given = [f"{row},{'ab'[codes[row]]}" for row in range(100, 110)]
    more.write_text("\n".join(["row,label", *given]) + "\n")

    def said(*options):
        out = tmp_path / f"out{len(options)}{options[:1]}"
        result = run("fit", path, "--labels", more, *options, "-o", out)
        assert result.exit_code == 0, result.stderr
        return result.stderr

    assert "column 'label', which is taken as a feature" in said()
    for options in (("--drop", "label"), ("--label-column", "label"), ("--columns", "x")):
        assert "taken as a feature" not in said(*options)
