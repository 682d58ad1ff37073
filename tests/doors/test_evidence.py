"""What a report shows of the rows: the same on every engine, bounded, and what it says it is."""

import numpy as np
import pytest
from scipy import sparse

from biglp._core.settings import Settings
from biglp._engines import make_engine
from biglp._fit.evidence import (
    EACH,
    ENTRIES,
    LEAST_SAMPLE,
    MOST_CLASSES,
    PARTS,
    EvidenceMaker,
    ReportSample,
    largest_entries,
)
from biglp._fit.pipeline import Pipeline
from biglp._fit.update import known_doubts
from biglp._labels import encode_labels
from biglp._learn.accuracy import reliability
from biglp._learn.base import HeldOut
from biglp._output import NoSink
from biglp._rows import as_source
from helpers import blobs, rows_in_a_block


def looked(X, y, engine="serial", rows=70, **parameters):
    """Evidence of a fit, and the fit."""
    parameters = {"n_landmarks": 40, "memory": "1GB", **parameters}
    with make_engine(engine) as made, rows_in_a_block(rows):
        labels = encode_labels(y, X.shape[0])
        fitted = Pipeline(made, Settings.of(parameters)).fit(as_source(X), labels, NoSink())
        doubts = known_doubts(labels, fitted.held_out)
        return fitted.look(doubts).evidence(), fitted


@pytest.fixture(scope="module")
def case():
    return blobs(n=400, spread=0.8)


@pytest.fixture(scope="module")
def found(case):
    X, y, _ = case
    return looked(X, y)


def test_the_sample_is_that_of_the_answers(case, found):
    _, y, truth = case
    evidence, _ = found
    unlabelled = np.flatnonzero(y == -1)
    assert len(evidence.codes) == len(unlabelled)
    assert (evidence.codes == truth[unlabelled]).mean() > 0.95
    assert ((evidence.confidence > 1 / 3) & (evidence.confidence <= 1)).all()
    assert evidence.places.shape == (len(unlabelled), 2)
    assert len(evidence.labelled_codes) == (y != -1).sum()


def test_same_on_every_engine_and_cut(case, found):
    X, y, _ = case
    other, _ = looked(X, y, "threads", rows=33)
    for name, array in found[0].state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)


def test_kept_and_read_back(found):
    again = ReportSample.from_state(found[0].state())
    np.testing.assert_array_equal(again.examples.values, found[0].examples.values)
    np.testing.assert_array_equal(again.places, found[0].places)


def test_examples_are_what_they_are_called(case, found):
    X, y, _ = case
    examples = found[0].examples
    np.testing.assert_allclose(examples.values, X[examples.rows], rtol=1e-6)
    for code in range(3):
        shares = [
            examples.shares[(examples.codes == code) & (examples.parts == PARTS.index(part))]
            for part in ("typical", "doubtful")
        ]
        assert [len(each) for each in shares] == [EACH, EACH]
        assert shares[0].mean() > shares[1].mean()
        assert (np.diff(shares[1]) >= 0).all()
    assert (y[examples.rows[examples.parts < 2]] == -1).all()


def test_a_wrong_label_is_suspicious(case):
    X, y, truth = case
    y = y.copy()
    y[np.flatnonzero(truth == 0)[:20]] = 0
    y[np.flatnonzero(truth == 1)[:20]] = 1
    wrong = int(np.flatnonzero(truth == 1)[7])
    y[wrong] = 0
    examples = looked(X, y)[0].examples
    listed = examples.parts == PARTS.index("suspicious")
    assert wrong in examples.rows[listed & (examples.codes == 0) & (examples.others == 1)]


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("factor", ["nystrom", "linear", "glnp"])
def test_every_factor(case, factor):
    X, y, truth = case
    evidence, _ = looked(X, y, factor=factor, n_landmarks="auto" if factor == "linear" else 20)
    assert (evidence.codes == truth[y == -1]).mean() > 0.9
    assert np.isfinite(evidence.places).all()


def test_sparse_rows_show_their_largest_entries():
    X, y, _ = blobs(n=300, spread=0.5)
    rows = sparse.csr_matrix(np.maximum(X, 0))
    examples = looked(rows, y)[0].examples
    assert examples.values.shape == examples.columns.shape == (len(examples.rows), ENTRIES)
    first = rows[examples.rows[0]].toarray()[0]
    kept = examples.columns[0][examples.columns[0] >= 0]
    np.testing.assert_allclose(first[kept], examples.values[0][: len(kept)], rtol=1e-6)
    assert len(kept) == min((first != 0).sum(), ENTRIES)


def test_largest_entries_of_an_empty_row():
    values, columns = largest_entries(sparse.csr_array(np.array([[0.0, -3.0, 1.0], [0, 0, 0]])))
    assert columns[0, :2].tolist() == [1, 2]
    assert values[0, :2].tolist() == [-3.0, 1.0]
    assert (columns[1] == -1).all()


def test_many_classes_are_bounded():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(60), 20)
    X = rng.normal(size=(60, 5))[truth] * 8 + rng.normal(size=(1200, 5))
    y = np.where(np.arange(1200) % 20 < 2, truth, -1)
    examples = looked(X, y)[0].examples
    assert len(np.unique(examples.codes)) <= MOST_CLASSES
    assert len(examples.rows) <= 3 * EACH * MOST_CLASSES


def test_little_memory_means_fewer_rows_and_no_map(case):
    X, y, _ = case
    _, fitted = looked(np.tile(X, (4, 1)), np.tile(y, 4))
    problem, answer = fitted.problem, fitted.model.answer
    evidence = EvidenceMaker(problem.graph, answer, problem.labels, memory=1 << 10).evidence()
    assert len(evidence.codes) <= LEAST_SAMPLE
    assert evidence.places.shape == (0, 2)
    assert len(evidence.examples.rows)


def test_reliability_counts_what_was_right():
    labels = encode_labels(np.tile([0, 1], 20), 40)
    sure = np.linspace(0.55, 0.99, 40)
    said = labels.codes.copy()
    said[:10] = 1 - said[:10]  # the ten least sure are wrong
    shares = np.where(said[:, None] == [0, 1], sure[:, None], 1 - sure[:, None])
    shares[-1] = np.nan
    (groups,) = reliability(labels, HeldOut(labels.rows, shares)).values()
    assert [group["labels"] for group in groups] == [13, 13, 13]
    assert groups[0]["right"] == round(3 / 13, 4)
    assert groups[1]["right"] == groups[2]["right"] == 1.0
    assert groups[0]["confidence"] < groups[1]["confidence"] < groups[2]["confidence"]
    assert reliability(labels, HeldOut(labels.rows[:5], shares[:5])) == {"reliability": None}
    assert reliability(labels, None) == {}


@pytest.mark.filterwarnings("error")
def test_largest_entries_that_are_too_large_for_the_page():
    values, _ = largest_entries(sparse.csr_array(np.array([[1e200, -1e300]])))
    assert np.isfinite(values).all()
