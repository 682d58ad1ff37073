"""The nearest labelled rows vote: against a sort, in any cut, and where they are asked."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._algebra.systems import DenseSystem, Spectrum
from biglp._core.size import EFFORTS, Size
from biglp._engines import ThreadEngine
from biglp._fit.plan import plan_fit
from biglp._learn.committee.nearest import (
    DISTANCES,
    MAX_BYTES,
    MAX_LABELS,
    MIN_LABELS,
    NEIGHBOURS,
    Nearest,
    count_voters,
)
from helpers import settings_of, threshold_table
from reference import squared_distances


def chessboard(n_rows, squares):
    rows = np.random.default_rng(0).random((n_rows, 2)).astype(np.float32)
    return rows, (rows * squares).astype(int).sum(axis=1) % 2


def models(fitted):
    """What the members of a fitted committee have learnt, by the names of their kinds."""
    return {one.member: one.model for one in fitted._model.answer.models}


def voters(rows, votes):
    """Labelled rows that vote, as a model keeps them."""
    dense = rows.toarray() if sparse.issparse(rows) else rows
    return Nearest(dense.astype(np.float32), votes.astype(np.float32))


class TestNearest:
    def test_the_nearest_vote(self):
        rng = np.random.default_rng(4)
        known, rows = rng.normal(size=(90, 4)), rng.normal(size=(33, 4)).astype(np.float32)
        votes = np.eye(3)[rng.integers(3, size=90)] * rng.uniform(0.5, 2.0, size=(90, 1))
        order = squared_distances(rows, known).argsort(axis=1)[:, :NEIGHBOURS]
        counted = votes[order].sum(axis=1)
        expected = np.log((counted + 1 / 3) / (counted.sum(axis=1, keepdims=True) + 1))
        np.testing.assert_allclose(voters(known, votes).of(rows), expected, rtol=1e-4)
        thin = voters(sparse.csr_matrix(known), votes).of(sparse.csr_matrix(rows))
        np.testing.assert_allclose(thin, expected, rtol=1e-4)

    def test_a_row_has_no_vote_on_itself(self):
        rows, codes = threshold_table(60)
        votes = np.eye(4)[codes]
        own = np.where(np.arange(60) < 50, np.arange(60), -1)
        found = voters(rows[:50], votes[:50]).of(rows, own)
        for i in (0, 17, 49, 55):
            others = np.delete(np.arange(50), own[i]) if own[i] >= 0 else np.arange(50)
            alone = voters(rows[others], votes[others]).of(rows[i : i + 1])
            np.testing.assert_allclose(found[i], alone[0], rtol=1e-6)

    def test_any_cut_and_torch_give_the_same(self, monkeypatch):
        torch = pytest.importorskip("torch")
        rows, codes = threshold_table(300)
        nearest = voters(rows[:80], np.eye(4)[codes[:80]])
        whole = nearest.of(rows)
        monkeypatch.setattr("biglp._learn.committee.nearest.DISTANCES", 80 * 7)
        np.testing.assert_array_equal(nearest.of(rows), whole)
        np.testing.assert_allclose(nearest.of(torch.from_numpy(rows)), whole, atol=1e-6)

    @pytest.mark.parametrize("few", [0, 8], ids=["product", "tree"])
    def test_tree_and_product_agree(self, few, monkeypatch):
        monkeypatch.setattr("biglp._learn.committee.nearest.FEW_FEATURES", few)
        rng = np.random.default_rng(3)
        rows = rng.normal(size=(200, 3)).astype(np.float32)
        nearest = voters(rows[:120], np.eye(3)[rng.integers(3, size=120)])
        own = np.where(np.arange(200) < 120, np.arange(200), -1)
        order = squared_distances(rows, rows[:120]).copy()
        order[np.arange(120), np.arange(120)] = np.inf
        counted = nearest.votes[order.argsort(axis=1)[:, :NEIGHBOURS]].sum(axis=1)
        expected = np.log((counted + 1 / 3) / (counted.sum(axis=1, keepdims=True) + 1))
        np.testing.assert_allclose(nearest.of(rows, own), expected, rtol=1e-5)
        assert ("tree" in vars(nearest)) == (few > 0)
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(nearest)).of(rows), nearest.of(rows)
        )
        same = voters(np.zeros((2000, 3)), np.eye(2)[np.arange(2000) % 2])
        assert np.isfinite(same.of(rows[:5], np.arange(5))).all()

    def test_time_and_memory_are_bounded(self):
        effort = EFFORTS["balanced"]
        count = partial(count_voters, effort=effort)
        assert count(10**6, 10_000, 40) == MAX_LABELS
        assert MIN_LABELS < count(10**6, 10_000, 800) <= MAX_BYTES / (800 * 4)
        assert MIN_LABELS < count(10**6, 100_000, 10) <= effort.voter_pairs / 100_000
        assert count(10**4, 10**8, 10) == MIN_LABELS  # a part of them, and not none
        assert count(10**4, 10_000, 10**5) == count(MIN_LABELS - 1, 5000, 10) == 0
        assert count(10**6, 10**6, 10) < count_voters(10**6, 10**6, 10, EFFORTS["best"])

    def test_the_plan_reckons_with_voters(self):
        size = Size(20_000, 100, 3, 10_000, 100.0, np.dtype(np.float32))
        few, many = (
            plan_fit(
                settings_of(LowRankLabelPropagation(memory="4GB")),
                replace(size, n_labelled=count),
                ThreadEngine(2),
            )
            for count in (MIN_LABELS - 1, 10_000)
        )
        assert many.small - few.small >= 2 * 4 * 10_000 * 100
        assert many.blocks - few.blocks >= 2 * 4 * DISTANCES

    def test_many_labels_are_heard_beyond_what_the_others_learn_from(self, tmp_path, monkeypatch):
        """A fine chessboard: no landmark, line or mean sees it, and neighbours do."""
        for system in (Spectrum, DenseSystem):
            monkeypatch.setattr(system, "most_labelled", 1500)
        rows, truth = chessboard(6000, squares=12)
        labels = np.where(np.arange(6000) < 5000, truth, -1)
        model = LowRankLabelPropagation(n_landmarks=60, random_state=0).fit(rows, labels)
        weights = {item["member"]: item["weight"] for item in model.report_["members"]}
        assert max(weights, key=weights.get) == "nearest labels"
        assert model.report_["held_out_labels"] == 1500
        assert len(models(model)["nearest labels"].rows) == 5000
        assert (model.transduction_ == truth)[5000:].mean() > 0.88
        np.testing.assert_array_equal(model.predict(rows[5000:]), model.transduction_[5000:])
        model.save(tmp_path / "model.biglp")
        loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
        np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))

    def test_voters_on_a_device(self):
        pytest.importorskip("torch")
        rows, truth = chessboard(1600, squares=6)
        labels = np.where(np.arange(1600) < MIN_LABELS, truth, -1)
        here, there = (
            LowRankLabelPropagation(n_landmarks=20, device=device, random_state=0).fit(rows, labels)
            for device in ("cpu", "torch:cpu")
        )
        assert "nearest labels" in models(there)
        close = np.abs(here.label_distributions_ - there.label_distributions_).max(axis=1) < 1e-3
        assert close.mean() > 0.99  # rounding may exchange equally near voters

    def test_fewer_labels_are_not_asked_to_vote(self):
        rows, truth = threshold_table(1500)
        labels = np.where(np.arange(1500) < MIN_LABELS - 1, truth, -1)
        report = LowRankLabelPropagation(n_landmarks=20).fit(rows, labels).report_
        assert "nearest labels" not in {item["member"] for item in report["members"]}
