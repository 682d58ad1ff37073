"""The committee: its members agree with brute force, its weights with a naive search."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier

from biglp import LowRankLabelPropagation
from biglp._committee.decision import CUT, CommitteeDecision, graph_logits, scaled_logits
from biglp._committee.forest import BLUR, TREES, blurred_logits, grow_forest
from biglp._committee.members import Member, centre_and_spread, fit_logistic
from biglp._committee.weights import PULL, START, weigh


def table(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, 6)).astype(np.float32)
    codes = (rows[:, 1] > 0.3) * 1 + (rows[:, 4] < -0.5) * 2
    return rows, codes


class TestForest:
    def test_says_what_scikit_learn_says(self):
        rows, codes = table()
        forest, _ = grow_forest(rows[:100], codes[:100], 4, seed=3)
        grown = RandomForestClassifier(TREES, random_state=3).fit(rows[:100], codes[:100])
        shares = np.zeros((len(rows), 4))
        shares[:, grown.classes_] = grown.predict_proba(rows)
        expected = np.log((1 - BLUR) * shares + BLUR / 4)
        np.testing.assert_allclose(forest.logits(rows), expected, atol=1e-5)

    def test_held_out_is_out_of_bag(self):
        rows, codes = table(120)
        _, held_out = grow_forest(rows, codes, 4, seed=1)
        grown = RandomForestClassifier(TREES, random_state=1, oob_score=True).fit(rows, codes)
        np.testing.assert_allclose(
            held_out, blurred_logits(grown.oob_decision_function_), atol=1e-5
        )

    def test_a_class_without_labels_gets_the_blur_only(self):
        rows, codes = table(80)
        forest, held_out = grow_forest(rows, codes, 6, seed=0)
        assert forest.logits(rows).shape == held_out.shape == (80, 6)
        np.testing.assert_allclose(forest.logits(rows)[:, 5], np.log(BLUR / 6), rtol=1e-6)

    def test_values_at_a_threshold_turn_left(self):
        rows = np.repeat(np.arange(8, dtype=np.float32), 10)[:, None]
        forest, _ = grow_forest(rows, (rows[:, 0] > 3).astype(int), 2, seed=0)
        at = np.unique(forest.thresholds[np.isfinite(forest.thresholds)])
        grown = RandomForestClassifier(TREES, random_state=0).fit(rows, rows[:, 0] > 3)
        near = np.concatenate([at, np.nextafter(at, np.float32(99)), np.nextafter(at, -99)])
        near = near.astype(np.float32)[:, None]
        expected = blurred_logits(grown.predict_proba(near))
        np.testing.assert_allclose(forest.logits(near), expected, atol=1e-5)

    def test_any_cut_and_torch_give_the_same(self):
        torch = pytest.importorskip("torch")
        rows, codes = table(300)
        forest, _ = grow_forest(rows[:60], codes[:60], 4, seed=0)
        whole = forest.logits(rows)
        parts = np.concatenate([forest.logits(rows[:7]), forest.logits(rows[7:])])
        np.testing.assert_array_equal(whole, parts)
        np.testing.assert_allclose(forest.logits(torch.from_numpy(rows)), whole, atol=1e-6)


class TestWeights:
    def members(self, n=60, c=3):
        rng = np.random.default_rng(5)
        codes = rng.integers(c, size=n)
        good = 2.0 * np.eye(c)[codes] + rng.normal(size=(n, c))
        noise = 5.0 * rng.normal(size=(n, c))
        return [Member("spread 0.9", good, good), Member("logistic", noise, noise)], codes

    def test_minimise_the_stated_loss(self):
        members, codes = self.members()
        prior = np.array([0.2, 0.0, -0.2])
        found = weigh(members, prior, codes)

        def loss(weights):
            total = weights[-1] * prior
            for weight, member, scale in zip(weights, members, found.scales, strict=False):
                centred = member.held_out - member.held_out.mean(axis=1, keepdims=True)
                total = total + weight * np.clip(centred / scale, -CUT, CUT)
            start = [START["spread 0.9"], START["logistic"], START["prior"]]
            logs = log_softmax(total, axis=1)
            return -logs[np.arange(len(codes)), codes].sum() + PULL * ((weights - start) ** 2).sum()

        best = minimize(loss, np.ones(3), method="Nelder-Mead", options={"xatol": 1e-6}).x
        np.testing.assert_allclose(found.weights, np.maximum(best, 0), atol=1e-3)
        assert found.weights[0] > 10 * found.weights[1]

    def test_without_held_out_labels_they_are_the_usual_ones(self):
        members, codes = self.members()
        silent = [Member(m.name, np.full_like(m.held_out, np.nan), m.sample) for m in members]
        found = weigh(silent, np.zeros(3), codes)
        assert found.n_held_out == 0
        assert found.accuracy is None
        assert list(found.weights) == [START["spread 0.9"], START["logistic"], START["prior"]]


def test_the_decision_is_the_formula():
    rng = np.random.default_rng(0)
    features, rows = rng.random((50, 4)), rng.normal(size=(50, 6)).astype(np.float32)
    codes = np.arange(50) % 3
    forest, _ = grow_forest(rows, codes, 3, seed=0)
    decision = CommitteeDecision(
        coefficients=rng.random((4, 6)),
        slopes=rng.normal(size=(6, 3)),
        intercepts=rng.normal(size=3),
        scales=np.array([0.5, 0.7, 2.0, 1.5]),
        weights=np.array([1.0, 2.0, 0.3, 0.6]),
        bias=np.array([0.1, 0.0, -0.1]),
        forest=forest,
    )
    densities = features @ decision.coefficients
    total = decision.bias + 1.0 * scaled_logits(graph_logits(densities[:, :3]), 0.5)
    total += 2.0 * scaled_logits(graph_logits(densities[:, 3:]), 0.7)
    total += 0.3 * scaled_logits(rows @ decision.slopes + decision.intercepts, 2.0)
    total += 0.6 * scaled_logits(forest.logits(rows), 1.5)
    answers, _ = decision.probabilities(features, None, rows)
    np.testing.assert_allclose(answers, softmax(total, axis=1), rtol=1e-5)
    again = CommitteeDecision.from_state(decision.state())
    np.testing.assert_array_equal(again.probabilities(features, None, rows)[0], answers)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_logistic_regression_does_not_depend_on_the_features_units(make):
    rows, codes = table(60)
    units = np.array([1e-3, 1.0, 1e4, 1.0, 7.0, 1.0])
    plain = fit_logistic(make(rows), codes, 4, centre_and_spread(make(rows.astype(float))))
    other = rows * units
    scaled = fit_logistic(make(other), codes, 4, centre_and_spread(make(other)))
    np.testing.assert_allclose(plain.logits(rows), scaled.logits(other), atol=1e-4)


def test_one_scale_keeps_small_components_small():
    rows = np.random.default_rng(0).normal(size=(500, 3)) * [10.0, 1.0, 0.1]
    _, spread = centre_and_spread(rows, one_scale=True)
    assert len(set(spread)) == 1
    np.testing.assert_allclose(spread[0], np.sqrt((rows.std(axis=0) ** 2).mean()))


class TestDoNoHarm:
    def test_trees_are_asked_and_heard_where_thresholds_decide(self, tmp_path):
        rng = np.random.default_rng(1)
        rows = rng.random((3000, 12)).astype(np.float32)
        truth = ((rows[:, 3] > 0.35) ^ (rows[:, 7] > 0.6)).astype(int)
        labels = np.where(rng.random(3000) < 0.1, truth, -1)
        model = LowRankLabelPropagation().fit(rows, labels)
        weights = {item["member"]: item["weight"] for item in model.report_["members"]}
        assert weights["forest"] > weights["logistic"]
        hidden = labels < 0
        assert (model.transduction_ == truth)[hidden].mean() > 0.9
        assert model.report_["unlabelled_rows_helped"] is not None
        model.save(tmp_path / "model.biglp")
        loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
        np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))

    def test_the_graph_is_said_to_help_where_rows_cluster(self):
        rows, truth = load_digits(return_X_y=True)
        known = np.random.default_rng(0).random(len(truth)) < 0.05
        labels = np.where(known, truth, -1)
        report = LowRankLabelPropagation().fit(rows, labels).report_
        assert report["unlabelled_rows_helped"]
        assert report["held_out_accuracy"] > report["supervised_accuracy"]
        assert report["trustworthy"]

    def test_few_labels_are_not_trusted(self):
        rows, truth = make_classification(500, random_state=0)
        labels = np.where(np.arange(500) < 8, truth, -1)
        report = LowRankLabelPropagation().fit(rows, labels).report_
        assert not report["trustworthy"]
        assert report["unlabelled_rows_helped"] is None
        assert "forest" not in {item["member"] for item in report["members"]}
