"""The committee: its members learn, their weights are found, and together they answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from biglp._algebra.balance import given_prior, power_prior, share_offsets
from biglp._algebra.poisson import mean_label
from biglp._algebra.systems import KEPT_FACTORS, MOST_LABELLED, DenseSystem, SparseSystem
from biglp._answers.base import HeldOut, Learnt, Method, Problem
from biglp._answers.committee import MEMBERS
from biglp._answers.committee.answer import CommitteeAnswer, WeightedModel
from biglp._answers.committee.appraisal import appraise, graph_helped
from biglp._answers.committee.member import Evidence, Member, MemberFit
from biglp._answers.committee.robust import learn_robustly
from biglp._answers.committee.weights import PRIOR_STARTS, Trained, Weights, find_weights
from biglp._core.arrays import to_numpy
from biglp._core.parameters import EFFORTS, left_out
from biglp._core.settings import AnswerSettings
from biglp._core.size import SKLEARN, Cost, Size, add_up
from biglp._core.threads import threads_of_one
from biglp._labels.labels import Labels
from biglp._rows.prepared import KEPT_BYTES
from biglp._transforms.project import PROJECT_ABOVE

IMAGINED_LABELS = 5.0
"""Labels of each class that are added to those given when the shares of the classes are guessed
from them: a dozen labels say little of them."""
LEAST_CHANCE = 1e-30
WEIGHED = 10
"""Numbers that a labelled row has for each class while weights are found, more than the graph
needs."""
TRUSTED_LABELS = 30
"""Held-out labels from which on a difference in their accuracy means something."""
SIDE_BY_SIDE = 1000
"""Landmarks from which on members that use the graph learn in threads: below that they take less
time than threads take from each other."""


class CommitteeMethod(Method):
    """All members, weighted."""

    unreached = (
        "the members of the committee that learn from labelled rows alone answered for them, which "
        "is less sure. Label some of them, or rows near them: suggest() (biglp suggest) names rows "
        "that are worth a label."
    )

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """What scikit-learn, the members and their weights take, and projected rows kept."""
        learnt = min(size.n_labelled, MOST_LABELLED)
        kept = KEPT_BYTES if size.n_features >= PROJECT_ABOVE else 0
        own = Cost(
            libraries=SKLEARN,
            fixed=kept + 8 * WEIGHED * learnt * size.n_classes,
            seconds={"learning": 0.5 + size.rank / 2000 + learnt / 1000},
        )
        return add_up([own, *(MEMBERS[name].cost(size) for name in MEMBERS)])

    @classmethod
    def learn(cls, problem: Problem[Labels]) -> Learnt:
        """Learn once, or twice where some labels are probably wrong."""
        return learn_robustly(problem, cls.learn_once)

    @classmethod
    def learn_once(cls, problem: Problem[Labels]) -> Learnt:
        """Let the members learn, and find their weights."""
        evidence = Evidence.of(problem, _log_prior(problem.labels, problem.settings))
        asked = [(kind, one) for kind in MEMBERS for one in MEMBERS[kind].candidates(evidence)]
        kinds = [kind for kind, _ in asked]
        fits = _learnt(evidence, [member for _, member in asked])
        by_graph = [fit for (_, one), fit in zip(asked, fits, strict=True) if one.says_graph]
        if by_graph:
            evidence = evidence.seen_through(by_graph[-1])  # that of the largest α
        trained = [
            Trained.of(evidence, one, fit) for (_, one), fit in zip(asked, fits, strict=True)
        ]
        found = _weights(trained, evidence)
        patience = EFFORTS[problem.settings.effort].worth
        worth = [
            one.member.says_graph or weight >= patience * one.member.worth
            for one, weight in zip(trained, found.weights, strict=False)
        ]
        supervised = [one for one in trained if not one.member.says_graph]
        with_all = found.accuracy
        missed = [one for one, kept in zip(trained, worth, strict=True) if not kept]
        if missed:
            kinds = [kind for kind, kept in zip(kinds, worth, strict=True) if kept]
            trained = [one for one, kept in zip(trained, worth, strict=True) if kept]
            found = _weights(trained, evidence)
        weighted = zip(trained, found.scales, found.weights, strict=False)
        bias = sum(weight * one.bias(scale) for one, scale, weight in weighted)
        answer = CommitteeAnswer(
            bias=bias + found.weights[-1] * evidence.log_prior,
            models=tuple(
                WeightedModel(kind, one.fit.model, float(scale), float(weight))
                for kind, one, scale, weight in zip(
                    kinds, trained, found.scales, found.weights[:-1], strict=True
                )
            ),
        )
        if problem.settings.balances("share"):
            answer = _with_shares(answer, evidence)
        without_graph = _weights(supervised, evidence)
        report = _report(trained, found, without_graph)
        report["left_out"] = _left_out(missed, evidence, with_all, found.accuracy)
        report["spectral_radius"] = problem.system.radius
        if found.n_held_out >= TRUSTED_LABELS:
            helped = graph_helped(found.shares, without_graph.shares, evidence.targets)
            report["unlabelled_rows_helped"] = helped
        report |= appraise(evidence, trained, answer, found.shares)
        held_out = HeldOut(evidence.part.rows, found.shares)
        return Learnt(answer, report, max(one.fit.n_iter for one in trained), held_out)


def _learnt(evidence: Evidence, members: list[Member]) -> list[MemberFit]:
    """Let the members learn; those that use the graph in threads, where they take the longest.

    They spend their time in matrix products and solves, with one BLAS thread each: the numbers are
    those that they would find one after the other.
    """
    engine, system = evidence.problem.graph.engine, evidence.problem.system
    n_threads = min(engine.n_threads, engine.most_at_once)
    if len(system.sums.totals) < SIDE_BY_SIDE:
        n_threads = 1
    if n_threads < 2 or type(system) not in (DenseSystem, SparseSystem):
        return [member.learn(evidence) for member in members]
    with threads_of_one(min(n_threads, KEPT_FACTORS)) as pool:
        waiting = {
            place: pool.submit(member.learn, evidence)
            for place, member in enumerate(members)
            if member.says_graph
        }
        found = {
            place: member.learn(evidence)
            for place, member in enumerate(members)
            if place not in waiting
        }
        found |= {place: future.result() for place, future in waiting.items()}
    return [found[place] for place in range(len(members))]


def _weights(trained: list[Trained], evidence: Evidence) -> Weights:
    labelled = evidence.labelled
    prior_start = evidence.between(*PRIOR_STARTS[evidence.kind])
    return find_weights(trained, evidence.log_prior, labelled.codes, labelled.given, prior_start)


def _left_out(
    missed: list[Trained], evidence: Evidence, before: float | None, after: float | None
) -> list[dict[str, Any]]:
    """Members that were not worth their time, and what a larger effort takes more of.

    What members would have brought is the difference on held-out labels, of all of them together.
    """
    n_rows = evidence.problem.labels.n_rows
    points = None if before is None or after is None else 100.0 * (before - after)
    found = [
        left_out(one.member.name, 0, 1, n_rows * one.fit.model.row_seconds, points)
        for one in missed
        if one.fit.model.row_seconds > 0
    ]
    found += [line for name in MEMBERS for line in MEMBERS[name].left_out(evidence)]
    graph, effort = evidence.problem.graph, evidence.problem.settings.effort
    return graph.factor.left_out(effort, n_rows) + found


def _with_shares(answer: CommitteeAnswer, evidence: Evidence) -> CommitteeAnswer:
    """Move the bias so that a sample of rows gets the class shares of the labels."""
    said, _ = answer.outputs(evidence.sample_features, evidence.sample_rows)
    logs = np.log(np.maximum(to_numpy(said), LEAST_CHANCE))
    shares = mean_label(evidence.problem.labels.counts)
    offsets = share_offsets(logs.astype(np.float64), shares)
    return replace(answer, bias=answer.bias - offsets)


def _log_prior(labels: Labels, settings: AnswerSettings) -> np.ndarray:
    """Logarithm of the class prior, centred; zero where classes are to be equally likely."""
    if not isinstance(settings.class_balance, str):
        prior = given_prior(settings.class_balance, labels.n_classes)
    else:
        equal = settings.balances("mass", "centre")
        prior = power_prior(labels.counts + IMAGINED_LABELS, 0.0 if equal else 1.0)
    logs = np.log(prior)
    return np.asarray(logs - logs.mean())


def _report(trained: list[Trained], found: Weights, without_graph: Weights) -> dict[str, Any]:
    weights = found.weights[:-1]
    graph = sum(w for one, w in zip(trained, weights, strict=True) if one.member.says_graph)
    everything = float(weights.sum())
    return {
        "members": found.report,
        "prior_weight": float(found.weights[-1]),
        "held_out_labels": found.n_held_out,
        "held_out_accuracy": found.accuracy,
        "supervised_accuracy": without_graph.accuracy,
        "unlabelled_rows_helped": None,
        "graph_share": float(graph) / everything if everything > 0 else 0.0,
    }
