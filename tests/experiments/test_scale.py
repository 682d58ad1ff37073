"""The large simulation, made small, through the command line."""

import csv

from cli_tools import done
from pages import check_images, check_page
from paper import scale


def test_scale_keeps_extrapolation_apart_from_measurement(tmp_path, monkeypatch):
    tiny = scale.Plan(rows="3K", features=8, k=5, methods=("random",), memory="1GB")
    monkeypatch.setattr(scale, "QUICK", tiny)
    done("reproduce", "scale", "--quick", "-o", tmp_path / "out", program="paper")
    page = (tmp_path / "out" / "paper.md").read_text()
    measured, extrapolated = page.split("Extrapolated to 100,000,000 rows, not measured")
    assert "Measured, 3,000 × 8" in measured
    assert "extrapolated" not in measured.lower()
    assert "about" in extrapolated
    with open(tmp_path / "out" / "results" / "scale.csv", newline="") as file:
        assert [row["kind"] for row in csv.DictReader(file)] == ["measured"]
    check_images(tmp_path / "out", check_page(page))
