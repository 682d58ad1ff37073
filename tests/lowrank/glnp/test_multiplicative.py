"""Multiplicative updates: steps that would raise the objective are taken with caution."""

import numpy as np

import reference_glnp as reference
from biglp._graph.glnp import steps as glnp_multiplicative
from biglp._graph.glnp.descent import Sums
from glnp_tools import some_rows


def test_a_step_that_would_raise_the_objective_is_taken_again_with_caution():
    class Stubborn:
        """A fit in which only cautious steps lower Q."""

        sums = Sums(np.array([[0.5]]), np.array([[1.0]]))
        tried, accepted = (), ()
        rounding = 1e-6

        def next_serial(self):
            return len(self.tried) + 1

        def for_rows(self, P):
            return P

        small = for_rows

        def trial(self, step):
            self.tried += (step,)
            return Sums(self.sums.P * (1.1 if step.cautious else 0.9), self.sums.M), ()

        def settled(self, tol):
            return True

        def accept(self, step, sums):
            self.accepted += (step,)

    descent = Stubborn()
    assert glnp_multiplicative.descend_multiplicative(descent, max_iter=1, tol=0.0)
    assert [step.cautious for step in descent.tried] == [False, True]
    assert descent.accepted == descent.tried[1:]


def test_the_cautious_step_has_exponent_one_quarter():
    X, F = some_rows(20, 6), np.random.default_rng(0).random((20, 3))
    P, norm = F.T @ X, np.linalg.norm(X)
    step = glnp_multiplicative.MultiplicativeStep(
        1, P / norm**2, P @ P.T / norm**2, F.T @ F, cautious=True
    )
    np.testing.assert_allclose(
        step.apply(X, F, None)[0], reference.multiplicative_update(X, F, 0.25), rtol=1e-12
    )
