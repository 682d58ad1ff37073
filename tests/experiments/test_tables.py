"""The accuracy tables on tiny data: draws of labels, and a page without gaps."""

import csv

import numpy as np
import pytest

from cli_tools import done
from pages import check_images, check_page
from paper import pages as data
from paper import tables

TINY_TABLES = tables.Plan(
    trials=2,
    ks=(10,),
    figure_ks=(5,),
    wide_ks=(),
    names=("SUSY", "Gisette"),
    dense_rows=2_000,
    glnp_iterations=3,
)


def test_draws_keep_the_test_rows_apart_and_are_nested():
    truth = np.arange(200) % 2
    found = tables.draws(truth, [4, 20], trials=3)
    assert len(found) == 6
    for draw in found:
        assert len(draw.test) == 40
        assert (draw.labels[draw.test] == -1).all()
        assert (draw.labels >= 0).sum() == draw.count
        assert set(draw.labels[draw.labels >= 0]) == {0, 1}
    few, many = found[0].labels >= 0, found[1].labels >= 0
    assert (few <= many).all()


def test_tables_write_csv_plots_and_a_page_without_gaps(archives, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "QUICK", TINY_TABLES)
    out = tmp_path / "out"
    result = done("reproduce", "tables", "--quick", "-o", out, program="paper")
    assert "Total:" in result.stdout
    page = (out / "paper.md").read_text()
    assert check_page(page) == ["img/classification"]
    check_images(out, ["img/classification"])
    assert "The subset is too small for" in page
    assert "2 trials instead of the paper's 10" in page
    assert "Not run here. Run `python -m paper reproduce scale`" in page
    with open(out / "results" / "tables.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["paper_data"] for row in rows} == {"SUSY", "Gisette"}
    row = next(r for r in rows if (r["method"], r["k"]) == ("nystrom-kmeans", "10"))
    assert float(row["difference"]) == pytest.approx(
        float(row["ours"]) - float(row["paper"]), abs=0.011
    )
    assert all(all(row.values()) for row in rows)


def test_missing_data_is_explained_on_the_page_and_on_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv(data.VARIABLE, str(tmp_path / "nowhere"))
    monkeypatch.setattr(tables, "QUICK", TINY_TABLES)
    result = done("reproduce", "tables", "--quick", "-o", tmp_path / "out", program="paper")
    page = (tmp_path / "out" / "paper.md").read_text()
    for text in (page, result.stdout):
        assert "susy_subset_30k.npz is missing" in text
        assert "Set BIGLP_DATA to a folder" in text
    assert "digits 4 v 9" in page  # what comes with scikit-learn stands in
    check_page(page)
