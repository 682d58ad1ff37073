"""Class means against the formula and against fits without each row."""

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._learn.base import centre_and_spread
from biglp._learn.committee.means import fit_class_means
from helpers import threshold_table
from reference import class_mean_logits, squared_distances


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
        found = model.of(dense)
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
        rows, _ = threshold_table(30)
        codes = np.r_[0, np.arange(29) % 2 + 1]
        model, held_out = fit_class_means(
            rows.astype(float), np.eye(4)[codes], centre_and_spread(rows.astype(float))
        )
        assert np.isnan(held_out[0]).all()
        assert np.isfinite(held_out[1:]).all()
        assert (model.of(rows).argmax(axis=1) != 3).all()

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
