"""What the first rows of a column tell, and the median of all."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from biglp._tables import Median, Number, look_at_column

N = 60
RANDOM = np.random.default_rng(0)
SENTENCES = [f"the {i} th customer was not happy at all with {i % 7}" for i in range(N)]


def look(values, name="column"):
    return look_at_column(name, pa.chunked_array([pa.array(values)]))


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


def test_free_text_is_no_category():
    assert look(SENTENCES).free_text
    assert not look([SENTENCES[i % 5] for i in range(N)]).free_text
    assert not look([f"K-{i}" for i in range(N)]).free_text


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


def test_numbers_written_as_text():
    found = look([*(f" {i % 9}.5" for i in range(N)), "n.a.", None])
    assert (found.content, found.written, found.mistake) == ("number", True, "n.a.")
    assert (found.missing, found.median) == (2, 4.5)
    assert not look([f"0{i % 7}123" for i in range(N)]).written  # a code: 0 before digits
    assert not look(["1", "x"] * N).written
    assert look(["1", "?"] * N).written  # a mark of missing values


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


def test_constants():
    assert look([3] * N).constant
    assert look([None] * N).constant
    assert look(["x"] * N).constant
    assert not look([3] * (N - 1) + [None]).constant  # where it is missing says something
    assert not look([3, 3]).constant


def test_moments():
    day = datetime.date(2024, 1, 1)
    found = look([day, day + datetime.timedelta(2), None, day + datetime.timedelta(1)])
    assert (found.content, found.missing) == ("time", 1)
    assert (found.low, found.median, found.high) == (19723, 19724, 19725)


def test_declared_categories_are_categories():
    codes = pa.chunked_array([pa.array([f"{i}" for i in range(N)]).dictionary_encode()])
    found = look_at_column("code", codes)
    assert (found.content, found.written, found.identity) == ("text", False, None)


def median_of(values, cuts=1):
    median = Median()
    for part in np.array_split(np.asarray(values, dtype=np.float64), cuts):
        median.add(part)
    return median.value


@pytest.mark.parametrize(
    "values",
    [[3.0], [1, 2], [-0.0, 0.0, -1.0], [-5, -4, 3, 8], [1e300, -1e300, 1e-300], [2.5] * 7],
)
def test_the_median_of_few_numbers_is_exact(values):
    assert median_of(values, 2) == np.median(values)
    assert Median().value is None


def test_the_median_of_many_numbers_in_any_order_and_cut():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=200_001), np.exp(3 * rng.normal(size=200_001)) - 1):
        medians = {median_of(rng.permutation(values), cuts) for cuts in (1, 7, 333)}
        assert len(medians) == 1
        assert abs(medians.pop() - np.median(values)) < 1e-4
