"""What the values of a column tell: identities, dates, numbers as people write them, the median."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from biglp._tables import Median, Number, look_at_column
from biglp._tables.kinds import as_places

N = 60


RANDOM = np.random.default_rng(0)


SENTENCES = [f"the {i} th customer was not happy at all with {i % 7}" for i in range(N)]


def look(values, name="column"):
    return look_at_column(
        name, pa.chunked_array([pa.array(values) if isinstance(values, list) else values])
    )


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("x", range(N), "counts the rows"),
        ("x", range(1000, 1000 - N, -1), "counts the rows"),
        ("Unnamed: 0", [float(i) for i in range(N)], "counts the rows"),
        ("customer_id", RANDOM.permutation(10 * N)[:N], "all different: an ID"),
        ("customerId", RANDOM.permutation(10 * N)[:N], "all different: an ID"),
        ("x", RANDOM.permutation(10 * N)[:N], None),
        ("customer_id", [i // 2 for i in range(N)], None),
        ("paid", RANDOM.permutation(10 * N)[:N], None),
        ("x", [0.5 + i for i in range(N)], None),
        ("x", [f"K-{i}" for i in range(N)], "different: a name or an ID"),
        ("x", [f"K-{i // 2}" for i in range(N)], None),
        ("x", range(10), None),  # too few to say
    ],
)
def test_identities(name, values, reason):
    found = look(list(values), name).identity
    assert (found is None) == (reason is None)
    assert reason is None or reason in found


@pytest.mark.parametrize(
    ("texts", "written"),
    [
        (["2024-01-05", "2023-12-31"], "%Y-%m-%d"),
        (["31.12.2023", "01.02.2024"], "%d.%m.%Y"),
        (["31/12/2023", "01/02/2024"], "%d/%m/%Y"),
        (["12/31/2023", "01/02/2024"], "%m/%d/%Y"),
        (["2024-01-05T10:00:00", "2024-01-05 11:30:00"], "ISO 8601"),
        (["27/04/2023 21:30", "03/05/2024 00:00"], "%d/%m/%Y %H:%M"),
        (["4/27/2023 21:30:01", "5/3/2024 00:00:59"], "%m/%d/%Y %H:%M:%S"),
        (["2024-01-05", "soon"], None),
        (["12-34-56-78", "12-34-56-79"], None),
    ],
)
def test_dates_written_as_text(texts, written):
    assert look(texts * N).date_format == written


@pytest.mark.parametrize(
    ("texts", "median"),
    [
        (["1,092", "371", "12,345"], 1092),  # a number without a comma: it is no decimal one
        (["1,234,567", "2,000", "-3,000"], 2000),
        (["1,234.5", "2,000.25", "3,000"], 2000.25),
        (["1,092", "2,345"], None),  # may be decimal commas
        (["0,123", "371"], 185.5615),  # cannot stand between thousands
        (["1,09", "371"], 186.045),
        (["1,092 kg", "371"], 731.5),
    ],
)
def test_thousands(texts, median):
    found = look(texts * N)
    assert found.median == median
    if median is not None:
        column = Number("x", texts=True, **vars(found.style))
        assert float(np.median(column.numbers(pa.array(texts)))) == median


def test_texts_constants_moments_and_declared_categories():
    assert look(SENTENCES).free_text
    assert not look([SENTENCES[i % 5] for i in range(N)]).free_text
    assert not look([f"K-{i}" for i in range(N)]).free_text
    for values, constant in (([3] * N, True), ([None] * N, True), (["x"] * N, True)):
        assert look(values).constant == constant
    assert not look([3] * (N - 1) + [None]).constant  # where it is missing says something
    assert not look([3, 3]).constant
    day = datetime.date(2024, 1, 1)
    found = look([day, day + datetime.timedelta(2), None, day + datetime.timedelta(1)])
    assert (found.content, found.missing) == ("time", 1)
    assert (found.low, found.median, found.high) == (19723, 19724, 19725)
    found = look(pa.array([f"{i}" for i in range(N)]).dictionary_encode())
    assert (found.content, found.written, found.identity) == ("text", False, None)
    found = look([*(f" {i % 9}.5" for i in range(N)), "n.a.", None])
    assert (found.content, found.written, found.mistake) == ("number", True, "n.a.")
    assert (found.missing, found.median) == (2, 4.5)
    assert not look([f"0{i % 7}123" for i in range(N)]).written  # a code: 0 before digits
    assert not look(["1", "x"] * N).written
    assert look(["1", "?"] * N).written  # a mark of missing values


def median_of(values, cuts=1):
    median = Median()
    for part in np.array_split(np.asarray(values, dtype=np.float64), cuts):
        median.add(part)
    return median.value


def test_the_median_in_any_order_and_cut():
    assert Median().value is None
    for values in ([3.0], [1, 2], [-0.0, 0.0, -1.0], [-5, -4, 3, 8], [1e300, -1e300, 1e-300]):
        assert median_of(values, 2) == np.median(values)
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=200_001), np.exp(3 * rng.normal(size=200_001)) - 1):
        medians = {median_of(rng.permutation(values), cuts) for cuts in (1, 7, 333)}
        assert len(medians) == 1
        assert abs(medians.pop() - np.median(values)) < 1e-4


# --------------------------------------------------------------------------------------------------
# Numbers as people write them.


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


def numbers_of(found, words):
    return Number("x", texts=True, **vars(found.style)).numbers(pa.array(words, pa.string()))


@pytest.mark.parametrize("case", READ)
def test_numbers_are_read(case):
    words, numbers, unit = READ[case]
    found = look(words * N)
    assert (found.content, found.written, found.style.unit) == ("number", True, unit)
    np.testing.assert_allclose(numbers_of(found, words), numbers, rtol=1e-12)
    assert np.isnan(numbers_of(found, ["n/k", "", "twelve", None, "1.2.3.4"])).all()


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_what_is_no_number_or_not_certain_is_left_alone(case):
    assert not look(NO_NUMBERS[case] * N).written


def test_few_mistakes_hide_no_numbers_and_rows_do_not_depend_on_those_beside_them():
    assert look(["$1", "$2.50"] * 9 + ["NA", "", "ask"]).written
    assert not look(["$1"] * 8 + ["ask", "free"]).written
    found = look(["$1", "-$2.50", "3"] * N)
    notes = [f"ask {chr(0x4E00 + number)} 5" for number in range(1000)]  # all of them different
    read = numbers_of(found, [*notes, "$3", "$4", "€4", "4 €", "4"])
    assert np.isnan(read[:1000]).all()
    np.testing.assert_array_equal(read[1000:], [3.0, 4.0, np.nan, np.nan, 4.0])


@pytest.mark.parametrize("offset", [0, 3, 9])
def test_categories_that_are_missing_are_minus_one_in_any_part(offset):
    values = [None if i % 3 == 1 else i for i in range(21)]
    found = as_places(pa.array(values, pa.int32())[offset:])
    assert found.tolist() == [-1 if value is None else value for value in values[offset:]]
    assert len(as_places(pa.array([], pa.int32()))) == 0
