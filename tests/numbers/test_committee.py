"""The members of the committee and their weights: each against its formula."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._learn import MEMBERS, MemberFit, TrainingSet
from biglp._learn.committee.find_weights import LEAST_SHARE, PULL, SIZE_PULL, Trained, find_weights
from helpers import blobs, threshold_table

CUT, DEPTH, NEIGHBOURS = 8.0, 10.0, 5
"""Those of the committee."""


def evidence_of(rows, y, weights=None, **changes):
    """What members learn from: the labels of rows that are left as they are."""
    settings = {"n_landmarks": 20, "scaling": "none", "random_state": 0, **changes}
    fitted = LowRankLabelPropagation(**settings).fit(rows, y, weights)
    return TrainingSet.of(fitted._problem)


def learnt(name, evidence, *given):
    """What a member has learnt, and what it says of held-out labels and of a sample."""
    return MEMBERS[name](*given).learn(evidence)


def centred(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def members_of(fitted):
    return {item["member"]: item["weight"] for item in fitted.report_["members"]}


def models(fitted):
    """What the members of a fitted committee have learnt, by the names of their kinds."""
    return {one.member: one.model for one in fitted._model.answer.models}


def test_the_answer_is_the_formula_also_after_it_was_saved(tmp_path, monkeypatch):
    for name in ("forest", "nearest labels"):
        monkeypatch.setattr(MEMBERS[name], "worth", 0.0)
    X, y, _ = blobs(n=1500, features=4, labelled=1200, dtype=np.float32, spread=2.0)
    fitted = LowRankLabelPropagation(n_landmarks=60, random_state=0, scaling="none").fit(X, y)
    answer, graph = fitted._model.answer, fitted._problem.graph
    rows = np.flatnonzero(y < 0)[:100]
    features = graph.features_of(rows)
    total = np.tile(answer.bias, (100, 1))
    for one in answer.models:
        if one.member == "spread":
            logits = np.log(np.maximum(features @ one.model.coefficients, 1e-30))
            logits = np.maximum(logits, logits.max(axis=1, keepdims=True) - DEPTH)
        else:
            logits = one.model.of(X[rows])
        total += one.weight * np.clip(centred(logits) / one.scale, -CUT, CUT)
    everybody = {"spread", "logistic", "class means", "forest", "nearest labels"}
    assert set(models(fitted)) == everybody
    expected = softmax(total, axis=1)
    np.testing.assert_allclose(fitted.label_distributions_[rows], expected, rtol=1e-4, atol=1e-6)
    fitted.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


class TestLogistic:
    @pytest.fixture
    def exact(self, monkeypatch):
        """One strength for all, and steps until nothing moves."""
        monkeypatch.setattr("biglp._learn.committee.logistic.ENOUGH", 1000)
        monkeypatch.setattr("biglp._learn.committee.logistic.TOLERANCE", 1e-7)

    @pytest.mark.usefixtures("exact")
    @pytest.mark.parametrize(("n_classes", "n_labels"), [(2, 60), (4, 80)])
    @pytest.mark.parametrize("together", [0, 1 << 16])
    def test_each_fold_is_that_of_scikit_learn(self, n_classes, n_labels, together, monkeypatch):
        monkeypatch.setattr("biglp._learn.committee.logistic.TOGETHER", together)
        rows, codes = threshold_table(400)
        codes %= n_classes
        evidence = evidence_of(rows, np.where(np.arange(400) < n_labels, codes, -1))
        found = learnt("logistic", evidence)
        centre, spread = evidence.standard
        rows, codes = (rows.astype(float) - centre) / spread, codes[:n_labels]

        def by_scikit_learn(seen, asked):
            model = LogisticRegression(C=0.1, tol=1e-8, max_iter=1000).fit(rows[seen], codes[seen])
            return model.predict_log_proba(rows[asked])

        every = np.arange(n_labels)
        logits = found.model.of(rows * spread + centre)
        expected = by_scikit_learn(every, np.arange(400))
        np.testing.assert_allclose(log_softmax(logits, axis=1), expected, atol=1e-4)
        for seen, left in StratifiedKFold(5, shuffle=True, random_state=0).split(every, codes):
            held_out = log_softmax(found.held_out[left], axis=1)
            np.testing.assert_allclose(held_out, by_scikit_learn(seen, left), atol=1e-4)

    @pytest.mark.usefixtures("exact")
    def test_sparse_rows_say_the_same_and_single_labels_are_not_held_out(self):
        rows, codes = threshold_table(200)
        rows = np.where(rows > 0, rows, 0)
        y = np.where(np.arange(200) < 40, codes, -1)
        y[np.flatnonzero(y == 3)[1:]] = -1
        found = learnt("logistic", evidence_of(sparse.csr_array(rows), y))
        plain = learnt("logistic", evidence_of(rows, y))
        np.testing.assert_allclose(found.held_out, plain.held_out, atol=1e-3)
        np.testing.assert_array_equal(np.isnan(plain.held_out).any(axis=1), y[y >= 0] == 3)

    def test_many_labels_loosen_the_pull_where_slopes_must_be_steep(self, monkeypatch):
        """Columns that are nearly copies of each other; what differs between them is the class."""
        rng = np.random.default_rng(0)
        rows = np.repeat(rng.normal(size=(600, 4)), 2, axis=1) + 0.3 * rng.normal(size=(600, 8))
        truth = (rows[:, 0] - rows[:, 1] + rows[:, 2] - rows[:, 3] > 0).astype(int)
        labels = np.where(np.arange(600) < 80, truth, -1)

        def accuracy():
            model = LowRankLabelPropagation(random_state=0).fit(rows, labels)
            return (model.transduction_ == truth)[labels < 0].mean()

        found = accuracy()
        monkeypatch.setattr("biglp._learn.committee.logistic.ENOUGH", 41)  # 40 a class: too few
        assert found > accuracy() + 0.1


class TestClassMeans:
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
    @pytest.mark.parametrize("weighty", [False, True])
    def test_they_are_the_formula_and_held_out_is_a_fit_without_the_row(self, make, weighty):
        rng = np.random.default_rng(2)
        rows = rng.normal(size=(60, 7)) * 3.0 + 5.0
        y = np.full(60, -1)
        y[:40] = np.r_[0, 1, 2, 0, 1, 2, rng.choice(3, 34, p=[0.6, 0.3, 0.1])]
        given, weights = y, None
        if weighty:
            given = np.where(y[:, None] >= 0, 0.8 * np.eye(3)[y] + 0.2 / 3, 0.0)
            weights = rng.uniform(0.5, 2.0, size=60)
        evidence = evidence_of(make(rows), given, weights)
        targets, known = evidence.targets, rows[:40]
        found, size = learnt("class means", evidence), (evidence.standard[1] ** 2).mean()
        expected = [ref.class_mean_logits(known, targets, x)[0] / size for x in rows]
        np.testing.assert_allclose(centred(found.model.of(rows)), expected, atol=1e-9)
        _, variance = ref.class_mean_logits(known, targets, rows[0])
        for i in range(40):
            others = np.delete(np.arange(40), i)
            n = targets[others].sum(axis=0)
            means = targets[others].T @ known[others] / n[:, None]
            # The variance within classes is that of all rows: one of them hardly changes it.
            logits = -0.5 * ref.squared_distances(rows[i][None], means)[0] + 0.5 * variance / n
            expected = (logits - logits.mean()) / size
            np.testing.assert_allclose(centred(found.held_out)[i], expected, atol=1e-9)


class TestSeeded:
    """K-means that starts at the labels."""

    def test_means_follow_the_formula(self):
        rng = np.random.default_rng(1)
        Y = np.zeros((40, 2))
        Y[:5] = [[1.0, 0], [0, 1], [0.5, 0.5], [1, 0], [0, 1]]
        weights = np.where(np.arange(40) == 3, 2.0, 1.0)
        evidence = evidence_of(rng.normal(size=(40, 3)), Y, weights)
        centre, spread = evidence.standard
        sample = (evidence.sample_rows - centre) / spread
        rows, targets = (evidence.rows - centre) / spread, evidence.targets
        means = np.array(
            [(targets[:, j, None] * rows).sum(0) / targets[:, j].sum() for j in (0, 1)]
        )
        for _ in range(10):
            logits = np.array([[x @ m - 0.5 * m @ m for m in means] for x in sample])
            shares = softmax(4.0 * logits / np.median(np.abs(centred(logits)).max(axis=1)), axis=1)
            means = np.array(
                [
                    (shares[:, j] @ sample + 10.0 * targets[:, j] @ rows)
                    / (shares[:, j].sum() + 10.0 * targets[:, j].sum())
                    for j in (0, 1)
                ]
            )
        expected = sample @ means.T - 0.5 * (means**2).sum(axis=1)
        found = learnt("seeded k-means", evidence)
        np.testing.assert_allclose(found.sample, expected, atol=1e-10)
        np.testing.assert_allclose(found.model.of(evidence.sample_rows), expected, atol=1e-10)

    def test_unlabelled_texts_move_the_means_and_other_rows_do_not_ask_it(self):
        rng = np.random.default_rng(0)
        truth = rng.integers(3, size=600)
        chances = np.full((3, 900), 0.2)  # words that all use, and words of each subject
        for number in range(3):
            chances[number, 200 * number : 200 * number + 200] = 1.0
        chances /= chances.sum(axis=1, keepdims=True)
        words = [rng.multinomial(rng.integers(15, 60), chances[code]) for code in truth]
        X = sparse.csr_matrix(np.array(words, dtype=np.float32))
        y = np.full(600, -1)
        y[[int(np.flatnonzero(truth == code)[0]) for code in range(3)]] = [0, 1, 2]
        fitted = LowRankLabelPropagation(random_state=0).fit(X, y)
        assert "seeded k-means" in members_of(fitted)
        assert (fitted.transduction_ == truth)[y < 0].mean() > 0.95
        assert (fitted.predict(X) == truth).mean() > 0.95
        y = np.where(np.arange(200) < 10, np.arange(200) % 2, -1)
        for rows in (rng.normal(size=(200, 5)), rng.random((200, 3)) @ rng.random((3, 250))):
            other = LowRankLabelPropagation(random_state=0).fit(rows, y)
            assert "seeded k-means" not in members_of(other)


def chessboard(n_rows, squares):
    rows = np.random.default_rng(0).random((n_rows, 2)).astype(np.float32)
    return rows, (rows * squares).astype(int).sum(axis=1) % 2


class TestNearest:
    @pytest.mark.parametrize("few", [0, 8], ids=["product", "tree"])
    def test_the_nearest_vote_and_none_on_itself_in_any_cut(self, few, monkeypatch):
        monkeypatch.setattr("biglp._learn.committee.nearest.MIN_LABELS", 50)
        monkeypatch.setattr("biglp._learn.committee.nearest.FEW_FEATURES", few)
        rng = np.random.default_rng(4)
        rows, codes = rng.normal(size=(200, 4)).astype(np.float32), rng.integers(3, size=200)
        weights = rng.uniform(0.5, 2.0, size=200)
        y = np.where(np.arange(200) < 90, codes, -1)
        found = learnt("nearest labels", evidence_of(rows, y, weights), len(y))
        of_sparse = learnt(
            "nearest labels", evidence_of(sparse.csr_matrix(rows), y, weights), len(y)
        )
        votes = np.eye(3)[codes[:90]] * weights[:90, None]
        distances = ref.squared_distances(rows, rows[:90])

        def expected(distances):
            counted = votes[distances.argsort(axis=1)[:, :NEIGHBOURS]].sum(axis=1)
            return np.log((counted + 1 / 3) / (counted.sum(axis=1, keepdims=True) + 1))

        whole = found.model.of(rows)
        np.testing.assert_allclose(whole, expected(distances), rtol=1e-4)
        np.testing.assert_allclose(of_sparse.model.of(rows), whole, rtol=1e-4)
        distances[np.arange(90), np.arange(90)] = np.inf
        np.testing.assert_allclose(found.held_out, expected(distances)[:90], rtol=1e-4)
        monkeypatch.setattr("biglp._learn.committee.nearest.DISTANCES", 90 * 7)
        np.testing.assert_array_equal(found.model.of(rows), whole)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found.model)).of(rows), whole)
        torch = pytest.importorskip("torch")
        on_torch = found.model.of(torch.from_numpy(rows))
        np.testing.assert_allclose(on_torch, whole, atol=1e-6)

    def test_many_labels_are_heard_beyond_what_the_others_learn_from(self, tmp_path, monkeypatch):
        """A fine chessboard: no landmark, line or mean sees it, and neighbours do."""
        for system in ("Spectrum", "DenseSystem"):
            monkeypatch.setattr(f"biglp._algebra.systems.{system}.most_labelled", 1500)
        rows, truth = chessboard(6000, squares=12)
        labels = np.where(np.arange(6000) < 5000, truth, -1)
        model = LowRankLabelPropagation(n_landmarks=60, random_state=0).fit(rows, labels)
        weights = members_of(model)
        assert max(weights, key=weights.get) == "nearest labels"
        assert model.report_["held_out_labels"] == 1500
        assert len(models(model)["nearest labels"].rows) == 5000
        assert (model.transduction_ == truth)[5000:].mean() > 0.88
        np.testing.assert_array_equal(model.predict(rows[5000:]), model.transduction_[5000:])
        model.save(tmp_path / "model.biglp")
        loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
        np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))


# --------------------------------------------------------------------------------------------------
# The weights minimise the stated loss, as a naive search does.


SPREAD, LOGISTIC, PRIOR = 0.6, 0.1, 1.0
"""Starting weights."""


def trained(name, held_out, start, shares=None):
    """A member that has said this of held-out labels and of a sample."""
    member = MEMBERS[name](*(("spread 0.9", 0.9) if name == "spread" else ()))
    return Trained(member, MemberFit(None, held_out, held_out), start, shares)


class TestWeights:
    def members(self, n=60, c=3):
        rng = np.random.default_rng(5)
        codes = rng.integers(c, size=n)
        good = 2.0 * np.eye(c)[codes] + rng.normal(size=(n, c))
        noise = 5.0 * rng.normal(size=(n, c))
        return [trained("spread", good, SPREAD), trained("logistic", noise, LOGISTIC)], codes

    def test_they_minimise_the_stated_loss(self):
        members, codes = self.members()
        prior = np.array([0.2, 0.0, -0.2])
        found = find_weights(members, prior, codes)
        start = np.array([SPREAD, LOGISTIC, PRIOR])

        def loss(unknown):
            weights, size = unknown[:-1], unknown[-1]
            total = weights[-1] * prior
            for weight, member, scale in zip(weights, members, found.scales, strict=False):
                total = total + weight * np.clip(centred(member.fit.held_out) / scale, -CUT, CUT)
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
        fits = [MemberFit(None, np.full((60, 3), np.nan), one.fit.sample) for one in members]
        silent = [
            Trained(one.member, fit, one.start) for one, fit in zip(members, fits, strict=True)
        ]
        found = find_weights(silent, np.zeros(3), codes)
        assert (found.n_held_out, found.accuracy) == (0, None)
        assert list(found.weights) == [SPREAD, LOGISTIC, PRIOR]

    def test_the_shares_of_the_labels_are_taken_off(self):
        members, codes = self.members()
        shares = np.array([0.5, 0.0, -0.5])
        plain = find_weights(members, np.zeros(3), codes)
        # Logits that hold the shares, which are known: the same as logits that do not.
        holding = trained("logistic", members[1].fit.held_out + shares, LOGISTIC, shares)
        found = find_weights([members[0], holding], np.zeros(3), codes)
        np.testing.assert_allclose(found.weights, plain.weights, atol=1e-6)
        np.testing.assert_allclose(found.shares, plain.shares, atol=1e-6)

    def test_labels_foretold_by_all_raise_the_size_and_by_nobody_silence_not_quite(self):
        codes = np.arange(14) % 2
        names, start = ("spread", "spread", "logistic", "class means"), (0.3, SPREAD, LOGISTIC, 0.0)
        heard = [
            trained(name, 3.0 * np.eye(2)[codes], w) for name, w in zip(names, start, strict=True)
        ]
        weights = find_weights(heard, np.zeros(2), codes).weights
        assert weights[:2].sum() > 1.2 * sum(start[:2])
        assert weights[3] < min(0.2 * weights.sum(), weights[1] / 2.0)
        rng = np.random.default_rng(3)
        codes = rng.integers(3, size=90)
        wrong = 2.0 * np.eye(3)[(codes + 1) % 3] + rng.normal(size=(90, 3))
        found = find_weights([trained("spread", wrong, SPREAD)], np.zeros(3), codes)
        assert 0.0 < found.weights[0] <= 1.01 * LEAST_SHARE * SPREAD
