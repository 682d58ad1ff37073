"""Numbers as people write them: money, percentages, units, magnitudes, thousands and decimals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from biglp._tables.number_styles import find_style

READ = {
    "dollars": (["$1,234.50", "$12", "-$3.00", "($4.50)"], [1234.5, 12, -3, -4.5], "$"),
    "euros": (["€ 1.092,50", "€ 950,00", "12,5 €"], [1092.5, 950, 12.5], "€"),
    "a code of a currency": (["1,500.50 USD", "300 USD"], [1500.5, 300], "USD"),
    "rupees": (["Rs. 500", "Rs. 1,200"], [500, 1200], "Rs."),
    "per cent": (["88.5%", "12 %", "0.5%", "−5 %"], [88.5, 12, 0.5, -5], "%"),
    "one unit": (["850 sq ft", "1,200 sq ft"], [850, 1200], "sq ft"),
    "units of one kind": (["12 km", "300 m", "1.5 km"], [12, 0.3, 1.5], "km"),
    "time": (["30 min", "2 hours", "1.5 h", "5 min"], [30, 120, 90, 5], "min"),
    "memory": (["16GB", "512 MB", "1TB", "8 GB"], [16, 0.512, 1000, 8], "GB"),
    "one and many": (["1 night", "2 nights", "10 nights"], [1, 2, 10], "nights"),
    "area": (["50 m2", "75 m²"], [50, 75], "m²"),
    "magnitudes": (["1.2M", "350K", "12"], [1.2e6, 3.5e5, 12], ""),
    "magnitudes of money": (["$1.2m", "$350k", "$12"], [1.2e6, 3.5e5, 12], "$"),
    "brackets": (["(3.00)", "4.00"], [-3, 4], ""),
    "at least": (["500+", "1,000+", "5,000+"], [500, 1000, 5000], ""),
    "ordinals": (["1st", "2nd", "3rd", "11th"], [1, 2, 3, 11], ""),
    "gaps between thousands": (["1 234 567", "12\u202f000", "5"], [1234567, 12000, 5], ""),
    "apostrophes between thousands": (["1'234.50", "12.00"], [1234.5, 12], ""),
    "points between thousands": (["1.092,50", "950,5"], [1092.5, 950.5], ""),
    "decimal commas": (["1,5", "2,75", "3"], [1.5, 2.75, 3], ""),
    "decimal commas behind a zero": (["0,125", "0,250"], [0.125, 0.25], ""),
    "powers": (["1e5", "-2.5E-3", ".5"], [1e5, -2.5e-3, 0.5], ""),
}
NO_NUMBERS = {
    "it may be a decimal comma": ["1,234", "2,345"],
    "codes": ["3A", "3B", "4C"],
    "addresses": ["12 Main Street", "5 Oak Ave", "77 Elm Road"],
    "clocks": ["9:50", "10:30"],
    "dates": ["12.06.2022", "01.02.2021"],
    "currencies": ["$5", "€6", "$7"],
    "telephones": ["+49 170 123456", "+49 171 999"],
    "ranges": ["10-20", "20-30"],
    "versions": ["1.2.3", "1.10.2"],
    "kinds of units": ["5 km", "3 kg"],
    "words": ["five", "six"],
}


@pytest.mark.parametrize("case", READ)
def test_numbers_are_read(case):
    words, numbers, unit = READ[case]
    style = find_style(pa.array(words), 0.9)
    assert style is not None
    assert style.unit == unit
    np.testing.assert_allclose(style.read(pa.array(words)).to_numpy(), numbers, rtol=1e-12)
    others = pa.array(["n/k", "", "twelve", None, "1.2.3.4"], pa.string())
    assert style.read(others).null_count == 5


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_what_is_no_number_or_not_certain_is_left_alone(case):
    assert find_style(pa.array(NO_NUMBERS[case]), 0.9) is None


def test_marks_of_missing_values_and_few_mistakes_do_not_hide_numbers():
    words = pa.array(["$1", "$2.50"] * 9 + ["NA", "", "ask"])
    style = find_style(words, 0.9)
    assert style is not None
    assert style.read(words).null_count == 3
    assert find_style(pa.array(["$1"] * 8 + ["ask", "free"]), 0.9) is None


def test_rows_do_not_depend_on_those_beside_them():
    style = find_style(pa.array(["$1", "$2.50"] * 50), 0.9)
    assert style is not None
    notes = [f"ask {chr(0x4E00 + number)} 5" for number in range(1000)]  # all of them different
    assert style.read(pa.array([*notes, "$3"])).to_pylist() == [None] * 1000 + [3.0]


def test_another_currency_is_no_number_of_the_column():
    style = find_style(pa.array(["$1", "-$2.50", "3"] * 50), 0.9)
    assert style is not None
    assert style.read(pa.array(["$4", "€4", "4 €", "4"])).to_pylist() == [4.0, None, None, 4.0]
