"""The weights minimise the stated loss, as a naive search does."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from biglp._learn.committee.answer import CUT, SpreadMember
from biglp._learn.committee.find_weights import LEAST_SHARE, PULL, SIZE_PULL, Trained, find_weights
from biglp._learn.committee.logistic import LogisticMember
from biglp._learn.committee.means import MeansMember
from biglp._learn.committee.member import MemberFit

SPREAD, LOGISTIC, PRIOR = 0.6, 0.1, 1.0
"""Starting weights."""


def spread_member(alpha):
    """The member that spreads labels at one of the usual α."""
    return SpreadMember(f"spread {alpha:g}", alpha)


def trained(member, held_out, start, sample=None):
    """A member that has said this of held-out labels, and this of a sample."""
    return Trained(member, MemberFit(None, held_out, held_out if sample is None else sample), start)


class TestWeights:
    def members(self, n=60, c=3):
        rng = np.random.default_rng(5)
        codes = rng.integers(c, size=n)
        good = 2.0 * np.eye(c)[codes] + rng.normal(size=(n, c))
        noise = 5.0 * rng.normal(size=(n, c))
        spread = trained(spread_member(0.9), good, SPREAD)
        return [spread, trained(LogisticMember(), noise, LOGISTIC)], codes

    def test_minimise_the_stated_loss(self):
        members, codes = self.members()
        prior = np.array([0.2, 0.0, -0.2])
        found = find_weights(members, prior, codes)

        start = np.array([SPREAD, LOGISTIC, PRIOR])

        def loss(unknown):
            weights, size = unknown[:-1], unknown[-1]
            total = weights[-1] * prior
            for weight, member, scale in zip(weights, members, found.scales, strict=False):
                said = member.fit.held_out
                centred = said - said.mean(axis=1, keepdims=True)
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
        silent = [
            trained(m.member, np.full_like(m.fit.held_out, np.nan), m.start, m.fit.sample)
            for m in members
        ]
        found = find_weights(silent, np.zeros(3), codes)
        assert found.n_held_out == 0
        assert found.accuracy is None
        assert list(found.weights) == [SPREAD, LOGISTIC, PRIOR]

    def test_the_shares_of_the_labels_are_taken_off(self):
        members, codes = self.members()
        shares = np.array([0.5, 0.0, -0.5])
        plain = find_weights(members, np.zeros(3), codes)
        noise = members[1].fit.held_out
        # Logits that hold the shares, which are known: the same as logits that do not.
        fit = MemberFit(None, noise + shares, noise + shares)
        holding = Trained(LogisticMember(), fit, LOGISTIC, shares)
        found = find_weights([members[0], holding], np.zeros(3), codes)
        np.testing.assert_allclose(found.weights, plain.weights, atol=1e-6)
        np.testing.assert_allclose(found.shares, plain.shares, atol=1e-6)

    def test_labels_that_all_members_foretell_raise_the_size_and_not_the_worst(self):
        codes = np.arange(14) % 2
        right = 3.0 * np.eye(2)[codes]
        members = (spread_member(0.9), spread_member(0.99), LogisticMember(), MeansMember())
        start = np.array([0.3, SPREAD, LOGISTIC, 0.0])
        heard = [trained(one, right, weight) for one, weight in zip(members, start, strict=True)]
        weights = find_weights(heard, np.zeros(2), codes).weights
        assert weights[:2].sum() > 1.2 * start[:2].sum()
        assert weights[3] < 0.2 * weights.sum()
        assert weights[1] > 2.0 * weights[3]

    def test_members_that_foretell_nothing_are_not_quite_silenced(self):
        rng = np.random.default_rng(3)
        codes = rng.integers(3, size=90)
        wrong = 2.0 * np.eye(3)[(codes + 1) % 3] + rng.normal(size=(90, 3))
        found = find_weights([trained(spread_member(0.9), wrong, SPREAD)], np.zeros(3), codes)
        assert 0.0 < found.weights[0] <= 1.01 * LEAST_SHARE * SPREAD
