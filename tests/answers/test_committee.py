"""The committee: its members agree with brute force, its weights with a naive search."""

from dataclasses import replace

import numpy as np
import pytest
from biglp._answers.committee.decision import CUT, CommitteeDecision, graph_logits, scaled_logits
from biglp._answers.committee.members import Member, centre_and_spread, fit_logistic
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier

from biglp import LowRankLabelPropagation
from biglp._answers.committee.forest import BLUR, TREES, blurred_logits, grow_forest
from biglp._answers.committee.means import fit_class_means
from biglp._answers.committee.nearest import (
    DISTANCES,
    MAX_BYTES,
    MAX_LABELS,
    MAX_PAIRS,
    MIN_LABELS,
    NEIGHBOURS,
    Nearest,
    count_voters,
    voters,
)
from biglp._answers.committee.weights import LEAST_SHARE, PULL, SIZE_PULL, START, weigh
from biglp._fit.memory import Shape, plan_memory
from biglp._fit.settings import Settings
from reference import class_mean_logits, squared_distances


def table(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, 6)).astype(np.float32)
    codes = (rows[:, 1] > 0.3) * 1 + (rows[:, 4] < -0.5) * 2
    return rows, codes


def chessboard(n_rows, squares):
    rows = np.random.default_rng(0).random((n_rows, 2)).astype(np.float32)
    return rows, (rows * squares).astype(int).sum(axis=1) % 2


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

        start = np.array([START["spread 0.9"], START["logistic"], START["prior"]])

        def loss(unknown):
            weights, size = unknown[:-1], unknown[-1]
            total = weights[-1] * prior
            for weight, member, scale in zip(weights, members, found.scales, strict=False):
                centred = member.held_out - member.held_out.mean(axis=1, keepdims=True)
                total = total + weight * np.clip(centred / scale, -CUT, CUT)
            logs = log_softmax(total, axis=1)
            usual = np.append(size * start[:-1], start[-1])
            pulls = PULL * ((weights - usual) ** 2).sum() / max(size, 1.0)
            pulls += SIZE_PULL * np.log(size) ** 2
            return pulls - logs[np.arange(len(codes)), codes].sum()

        limits = [*((LEAST_SHARE * least, None) for least in start), (1e-2, None)]
        naive = [
            minimize(loss, [1.0, 1.0, 1.0, size], method="L-BFGS-B", bounds=limits)
            for size in (0.2, 1.0, 5.0)
        ]
        best = min(naive, key=lambda found: found.fun)
        np.testing.assert_allclose(found.weights, best.x[:-1], atol=1e-3)
        assert found.weights[0] > 5 * found.weights[1]

    def test_without_held_out_labels_they_are_the_usual_ones(self):
        members, codes = self.members()
        silent = [Member(m.name, np.full_like(m.held_out, np.nan), m.sample) for m in members]
        found = weigh(silent, np.zeros(3), codes)
        assert found.n_held_out == 0
        assert found.accuracy is None
        assert list(found.weights) == [START["spread 0.9"], START["logistic"], START["prior"]]

    def test_labels_that_all_members_foretell_raise_the_size_and_not_the_worst(self):
        codes = np.arange(14) % 2
        right = 3.0 * np.eye(2)[codes]
        names = ("spread 0.9", "spread 0.99", "logistic", "class means")
        weights = weigh([Member(name, right, right) for name in names], np.zeros(2), codes).weights
        start = np.array([START[name] for name in names])
        assert weights[:2].sum() > 1.2 * start[:2].sum()
        assert weights[3] < 0.2 * weights.sum()
        assert weights[1] > 2.0 * weights[3]

    def test_members_that_foretell_nothing_are_not_quite_silenced(self):
        rng = np.random.default_rng(3)
        codes = rng.integers(3, size=90)
        wrong = 2.0 * np.eye(3)[(codes + 1) % 3] + rng.normal(size=(90, 3))
        found = weigh([Member("spread 0.9", wrong, wrong)], np.zeros(3), codes)
        assert 0.0 < found.weights[0] <= 1.01 * LEAST_SHARE * START["spread 0.9"]


class TestClassMeans:
    def problem(self, make=np.asarray, weighty=False):
        rng = np.random.default_rng(2)
        rows = rng.normal(size=(40, 7)) * 3.0 + 5.0
        targets = np.eye(3)[np.r_[0, 1, 2, 0, 1, 2, rng.choice(3, 34, p=[0.6, 0.3, 0.1])]]
        if weighty:
            targets = (0.8 * targets + 0.1) * rng.uniform(0.5, 2.0, size=(40, 1))
        return make(rows), targets, rows

    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
    @pytest.mark.parametrize("weighty", [False, True])
    def test_says_how_near_the_means_are(self, make, weighty):
        rows, targets, dense = self.problem(make, weighty)
        standard = centre_and_spread(rows)
        size = (standard[1] ** 2).mean()
        model, _ = fit_class_means(rows, targets, standard)
        found = model.logits(dense)
        found -= found.mean(axis=1, keepdims=True)
        expected = [class_mean_logits(dense, targets, x)[0] / size for x in dense]
        np.testing.assert_allclose(found, expected, atol=1e-9)

    @pytest.mark.parametrize("weighty", [False, True])
    def test_held_out_is_a_fit_without_the_row(self, weighty):
        rows, targets, _ = self.problem(weighty=weighty)
        standard = centre_and_spread(rows)
        size = (standard[1] ** 2).mean()
        _, held_out = fit_class_means(rows, targets, standard)
        held_out -= held_out.mean(axis=1, keepdims=True)
        _, variance = class_mean_logits(rows, targets, rows[0])
        for i in range(len(rows)):
            others = np.delete(np.arange(len(rows)), i)
            n = targets[others].sum(axis=0)
            means = targets[others].T @ rows[others] / n[:, None]
            # The variance within classes is that of all rows: one of them hardly changes it.
            logits = -0.5 * squared_distances(rows[i][None], means)[0] + 0.5 * variance / n
            np.testing.assert_allclose(held_out[i], (logits - logits.mean()) / size, atol=1e-9)

    def test_classes_with_one_row_or_none(self):
        rows, _ = table(30)
        codes = np.r_[0, np.arange(29) % 2 + 1]
        model, held_out = fit_class_means(
            rows.astype(float), np.eye(4)[codes], centre_and_spread(rows.astype(float))
        )
        assert np.isnan(held_out[0]).all()
        assert np.isfinite(held_out[1:]).all()
        assert (model.logits(rows).argmax(axis=1) != 3).all()

    def test_few_labels_and_many_features(self):
        """Where each of many features says a little, means are heard and logistic is not."""
        rng = np.random.default_rng(0)
        truth = rng.integers(2, size=2000)
        rows = (rng.normal(size=(2000, 150)) + 0.15 * truth[:, None]).astype(np.float32)
        labels = np.where(np.arange(2000) < 150, truth, -1)
        fitted = LowRankLabelPropagation(random_state=0).fit(rows, labels)
        weights = {item["member"]: item["weight"] for item in fitted.report_["members"]}
        assert weights["class means"] > weights["logistic"]
        assert (fitted.transduction_ == truth)[150:].mean() > 0.74


class TestNearest:
    def test_the_nearest_vote(self):
        rng = np.random.default_rng(4)
        known, rows = rng.normal(size=(90, 4)), rng.normal(size=(33, 4)).astype(np.float32)
        votes = np.eye(3)[rng.integers(3, size=90)] * rng.uniform(0.5, 2.0, size=(90, 1))
        order = squared_distances(rows, known).argsort(axis=1)[:, :NEIGHBOURS]
        counted = votes[order].sum(axis=1)
        expected = np.log((counted + 1 / 3) / (counted.sum(axis=1, keepdims=True) + 1))
        np.testing.assert_allclose(voters(known, votes).logits(rows), expected, rtol=1e-4)
        thin = voters(sparse.csr_matrix(known), votes).logits(sparse.csr_matrix(rows))
        np.testing.assert_allclose(thin, expected, rtol=1e-4)

    def test_a_row_has_no_vote_on_itself(self):
        rows, codes = table(60)
        votes = np.eye(4)[codes]
        own = np.where(np.arange(60) < 50, np.arange(60), -1)
        found = voters(rows[:50], votes[:50]).logits(rows, own)
        for i in (0, 17, 49, 55):
            others = np.delete(np.arange(50), own[i]) if own[i] >= 0 else np.arange(50)
            alone = voters(rows[others], votes[others]).logits(rows[i : i + 1])
            np.testing.assert_allclose(found[i], alone[0], rtol=1e-6)

    def test_any_cut_and_torch_give_the_same(self, monkeypatch):
        torch = pytest.importorskip("torch")
        rows, codes = table(300)
        nearest = voters(rows[:80], np.eye(4)[codes[:80]])
        whole = nearest.logits(rows)
        monkeypatch.setattr("biglp._answers.committee.nearest.DISTANCES", 80 * 7)
        np.testing.assert_array_equal(nearest.logits(rows), whole)
        np.testing.assert_allclose(nearest.logits(torch.from_numpy(rows)), whole, atol=1e-6)

    def test_time_and_memory_are_bounded(self):
        assert count_voters(10**6, 10_000, 40) == MAX_LABELS
        assert MIN_LABELS < count_voters(10**6, 10_000, 800) <= MAX_BYTES / (800 * 4)
        assert MIN_LABELS < count_voters(10**6, 100_000, 10) <= MAX_PAIRS / 100_000
        assert count_voters(10**4, 10**6, 10) == count_voters(10**4, 10_000, 10**5) == 0
        assert count_voters(MIN_LABELS - 1, 5000, 10) == 0

    def test_the_plan_reckons_with_voters(self):
        shape = Shape(20_000, 100, 3, 10_000, 100.0, np.dtype(np.float32))
        few, many = (
            plan_memory(
                4 << 30,
                replace(shape, n_labelled=count),
                Settings.of(LowRankLabelPropagation()),
                workers=2,
            )
            for count in (MIN_LABELS - 1, 10_000)
        )
        assert many.small - few.small >= 2 * 4 * 10_000 * 100
        assert many.blocks - few.blocks >= 2 * 4 * DISTANCES

    def test_many_labels_are_heard_beyond_what_the_others_learn_from(self, tmp_path, monkeypatch):
        """A fine chessboard: no landmark, line or mean sees it, and neighbours do."""
        monkeypatch.setattr("biglp._answers.deciding.MAX_LABELLED", 1500)
        rows, truth = chessboard(6000, squares=12)
        labels = np.where(np.arange(6000) < 5000, truth, -1)
        model = LowRankLabelPropagation(n_landmarks=60, random_state=0).fit(rows, labels)
        weights = {item["member"]: item["weight"] for item in model.report_["members"]}
        assert max(weights, key=weights.get) == "nearest labels"
        assert model.report_["held_out_labels"] == 1500
        assert len(model._model.decision.nearest.rows) == 5000
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
        assert there._model.decision.nearest is not None
        close = np.abs(here.label_distributions_ - there.label_distributions_).max(axis=1) < 1e-3
        assert close.mean() > 0.99  # rounding may exchange equally near voters

    def test_fewer_labels_are_not_asked_to_vote(self):
        rows, truth = table(1500)
        labels = np.where(np.arange(1500) < MIN_LABELS - 1, truth, -1)
        report = LowRankLabelPropagation(n_landmarks=20).fit(rows, labels).report_
        assert "nearest labels" not in {item["member"] for item in report["members"]}


def test_the_decision_is_the_formula():
    rng = np.random.default_rng(0)
    features, rows = rng.random((50, 4)), rng.normal(size=(50, 6)).astype(np.float32)
    codes = np.arange(50) % 3
    forest, _ = grow_forest(rows, codes, 3, seed=0)
    decision = CommitteeDecision(
        coefficients=rng.random((4, 6)),
        slopes=rng.normal(size=(6, 6)),
        intercepts=rng.normal(size=6),
        scales=np.array([0.5, 0.7, 2.0, 0.8, 1.5, 0.9]),
        weights=np.array([1.0, 2.0, 0.3, 0.4, 0.6, 0.2]),
        bias=np.array([0.1, 0.0, -0.1]),
        forest=forest,
        nearest=Nearest(rows[:20], np.eye(3, dtype=np.float32)[codes[:20]]),
    )
    densities = features @ decision.coefficients
    linear = rows @ decision.slopes + decision.intercepts
    total = decision.bias + 1.0 * scaled_logits(graph_logits(densities[:, :3]), 0.5)
    total += 2.0 * scaled_logits(graph_logits(densities[:, 3:]), 0.7)
    total += 0.3 * scaled_logits(linear[:, :3], 2.0) + 0.4 * scaled_logits(linear[:, 3:], 0.8)
    total += 0.6 * scaled_logits(forest.logits(rows), 1.5)
    total += 0.2 * scaled_logits(decision.nearest.logits(rows), 0.9)
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

    def test_trees_are_not_asked_about_principal_components(self):
        rng = np.random.default_rng(0)
        hidden = rng.normal(size=(600, 5))
        rows = (hidden @ rng.normal(size=(5, 220))).astype(np.float32)
        labels = np.where(np.arange(600) < 60, hidden[:, 0] > 0, -1)
        model = LowRankLabelPropagation().fit(rows, labels)
        assert model._model.scaling.projection is not None
        assert "forest" not in {item["member"] for item in model.report_["members"]}

    def test_few_labels_are_not_trusted(self):
        rows, truth = make_classification(500, random_state=0)
        labels = np.where(np.arange(500) < 8, truth, -1)
        report = LowRankLabelPropagation().fit(rows, labels).report_
        assert not report["trustworthy"]
        assert report["unlabelled_rows_helped"] is None
        assert "forest" not in {item["member"] for item in report["members"]}
