"""Labels that are in the file of the rows: rows that have one are not suggested."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from cli_tools import done


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
