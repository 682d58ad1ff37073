"""The committee: its members learn, their weights are found, and together they answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from biglp._algebra.balance import given_prior, power_prior, share_offsets
from biglp._algebra.spreading import mean_label
from biglp._algebra.systems import KEPT_FACTORS, MOST_LABELLED, DenseSystem, SparseSystem
from biglp._core.arrays import to_numpy
from biglp._core.parameters import EFFORTS, left_out
from biglp._core.settings import AnswerSettings
from biglp._core.size import SKLEARN, Cost, Size, add_up
from biglp._core.threads import threads_of_one
from biglp._labels.doubts import LOOKED_AT_BEFORE, PROBABLY, WRONG_BEFORE, LabelDoubts, find_doubts
from biglp._labels.labels import Labels
from biglp._learn.accuracy import ALARM, TINY, HeldOutLabels, estimate_accuracy, unseen_share
from biglp._learn.base import SAMPLE, HeldOut, LearnResult, Method, Problem
from biglp._learn.committee import MEMBERS
from biglp._learn.committee.answer import CommitteePredictor, WeightedModel, scaled_logits
from biglp._learn.committee.find_weights import PRIOR_STARTS, Trained, Weights, find_weights
from biglp._learn.committee.member import Member, MemberFit, TrainingSet
from biglp._rows.prepared import KEPT_BYTES
from biglp._rows.source import among
from biglp._transforms.project import PROJECT_ABOVE

if TYPE_CHECKING:
    from biglp._learn.spreading import SpreadingPredictor


# --------------------------------------------------------------------------------------------------
# ``class_balance="share"``: an answer whose classes have the shares of the labels.


SHARES_SAMPLE = 10_000
"""Rows that tell where the thresholds of the classes are."""


def with_class_shares(answer: SpreadingPredictor, problem: Problem[Labels]) -> SpreadingPredictor:
    """Move an answer's scores so that a sample of rows gets the class shares of the labels.

    √d is the constant mode of the graph, √d = F̄·s (:mod:`biglp._algebra.balance`).
    """
    column_sums = problem.graph.features.normalisation.column_sums
    mode = problem.sums.constant if column_sums is None else column_sums
    constant = problem.sums.unmix(mode[:, None])[:, 0]
    matrix = np.column_stack([answer.coefficients, constant])
    found = problem.graph.sample_products(SHARES_SAMPLE, matrix)
    scores, roots = found[:, :-1], found[:, -1]
    known = roots > 0  # a row without features, or with a repaired degree, tells nothing
    if not known.any():
        return answer
    shares = mean_label(problem.labels.counts)
    offsets = share_offsets(scores[known] / roots[known, None], shares)
    return replace(answer, coefficients=answer.coefficients - np.outer(constant, offsets))


# --------------------------------------------------------------------------------------------------
# Labels that are probably wrong count less: the committee learns twice where it has to.
#
# What the committee says of labelled rows without their own labels tells how many labels are wrong,
# and which (:mod:`biglp._labels.doubts`). Where that is a larger share than was expected before any
# label was looked at, and it can be told which ones, each label's weight is multiplied by the
# probability that it is right, and all members learn again. Else nothing is done: with good labels
# there is little to win, and where classes overlap so far that wrong labels look like right ones,
# lowering both loses more than it gains.
#
# No label is taken away, so that no class is. Of more labels than are held out, the others keep
# their weights.


EXPECTED = WRONG_BEFORE / LOOKED_AT_BEFORE
"""Share of wrong labels above which labels are lowered."""
LEAST_TOLD = 0.15
"""Share of the wrong labels that must be among those called so. Of 10 % wrong labels among 500 it
is about .1 on SUSY, .2 to .4 on tables, .6 on text and .9 on images."""
LEAST_LABELS = 100
"""Labels below which nothing is lowered: one that is unlike the others says little there."""
LEAST_TRUST = 0.01
"""Probability of being right that every label is left."""


def learn_robustly(
    problem: Problem[Labels], learn: Callable[[Problem[Labels]], LearnResult]
) -> LearnResult:
    """Learn, and where too many labels seem to be wrong learn again with less trust in those."""
    learnt = learn(problem)
    doubts = _doubts(problem.labels, learnt)
    lowered = 0
    if doubts is not None and _worth_it(doubts):
        learnt = learn(with_less_trust(problem, doubts))
        lowered = doubts.n_probably_wrong
        doubts = _doubts(problem.labels, learnt)
    found = {
        "probably_wrong_labels": None if doubts is None else doubts.n_probably_wrong,
        "label_error_rate": None if doubts is None else doubts.error_rate,
        "labels_lowered": lowered,
    }
    return replace(learnt, report={**learnt.report, **found})


def with_less_trust(problem: Problem[Labels], doubts: LabelDoubts) -> Problem[Labels]:
    """The same problem, each label weighted by the probability that it is right."""
    labels = problem.labels
    weights = np.ones(len(labels.rows)) if labels.weights is None else labels.weights.copy()
    places = np.searchsorted(labels.rows, doubts.rows)
    weights[places] *= np.maximum(1.0 - doubts.wrong, LEAST_TRUST)
    lowered = replace(labels, weights=weights)
    before, after = labels.take(places), lowered.take(places)
    # B is linear in the weights. Nothing is withdrawn, so that no trace of it can be left behind.
    given = before.one_hot(before.codes) if before.given is None else before.given
    change = after.targets_within(0, after.n_rows)[1] - given
    targets = [
        view.sums.targets + np.asarray(view.mixed_features(after.rows).T @ change)
        for view in problem.views
    ]
    return problem.with_labels(lowered, targets)


def _worth_it(doubts: LabelDoubts) -> bool:
    """Whether labels seem to be wrong, and some of them can be named."""
    told = doubts.wrong[doubts.wrong > PROBABLY].sum() >= LEAST_TOLD * doubts.wrong.sum()
    enough = len(doubts.rows) >= LEAST_LABELS
    return bool(enough and told and doubts.error_rate > EXPECTED)


def _doubts(labels: Labels, learnt: LearnResult) -> LabelDoubts | None:
    """What is thought of the labels that were held out; None where none could be."""
    held_out = learnt.held_out
    if held_out is None or not np.isfinite(held_out.shares).any():
        return None
    part = labels.take(np.searchsorted(labels.rows, held_out.rows))
    return find_doubts(part, held_out.shares)


# --------------------------------------------------------------------------------------------------
# What the report says of the committee: how many rows are right, and whether labels tell.


WIDEST = 0.2
"""Width of the 90 % interval up to which the estimate is something to go by."""


def appraise(
    evidence: TrainingSet, trained: list[Trained], answer: CommitteePredictor, held_out: np.ndarray
) -> dict[str, Any]:
    """Facts for the report.

    ``trained``: the members behind the answer's models, in their order; ``held_out``: (l, c);
    Class probabilities of the labelled rows without their own labels; NaN where unknown.
    """
    problem = evidence.problem
    labels, seed = problem.labels, problem.settings.seed
    n_rows = problem.graph.source.n_rows
    drawn = problem.graph.sample.rows(SAMPLE)
    sample, targets = sample_shares(answer, trained), evidence.targets
    unlabelled = sample[~among(drawn, labels.rows)]
    known = HeldOutLabels(held_out, targets)
    estimate = estimate_accuracy(known, unlabelled, len(labels.rows))
    names = [str(name) for name in labels.classes.tolist()]
    if estimate is not None:
        estimate["recall"] = dict(zip(names, estimate["recall"], strict=True))
        estimate["largest_class"] = names[estimate["largest_class"]]
    weights = targets @ (sample.mean(axis=0) / np.maximum(targets.sum(axis=0), TINY))
    unseen = unseen_share(evidence.rows, weights, evidence.sample_rows, seed)
    covered = None if unseen is None else unseen < ALARM
    return {
        "estimated_accuracy": estimate,
        "unseen_share": None if unseen is None else round(unseen, 3),
        "labels_cover_rows": covered,
        "trustworthy": covered is not False and (_narrow(estimate) or len(labels.rows) == n_rows),
    }


def sample_shares(answer: CommitteePredictor, trained: list[Trained]) -> np.ndarray:
    """Class probabilities of the sample, from what the members have said of it.  (b, c)."""
    total = np.zeros_like(trained[0].fit.sample, dtype=np.float64) + answer.bias
    for model, one in zip(answer.models, trained, strict=True):
        total += model.weight * scaled_logits(one.fit.sample, model.scale)
    return np.asarray(softmax(total, axis=1))


def graph_helped(found: np.ndarray, without: np.ndarray, truth: np.ndarray) -> bool | None:
    """Whether more held-out labels are found with the graph than without.

    Labels that only one of the two finds are like tosses of a coin where neither is better: a
    difference within the spread of so many tosses is none.

    ``found, without``: (l, c): class probabilities with the graph and without; NaN where unknown;
    ``truth``: (l, c): w·Y; ``helped``: none: no difference.
    """
    known = np.isfinite(found).all(axis=1) & np.isfinite(without).all(axis=1)
    likeliest = truth[known].argmax(axis=1)
    change = (found[known].argmax(axis=1) == likeliest).astype(int)
    change -= without[known].argmax(axis=1) == likeliest
    won, differ = int(change.sum()), int(np.abs(change).sum())
    return None if won**2 <= differ else won > 0


def _narrow(estimate: dict[str, Any] | None) -> bool:
    if estimate is None:
        return False
    low, high = estimate["interval"]
    return bool(high - low <= WIDEST)


# --------------------------------------------------------------------------------------------------


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
    def learn(cls, problem: Problem[Labels]) -> LearnResult:
        """Learn once, or twice where some labels are probably wrong."""
        return learn_robustly(problem, cls.learn_once)

    @classmethod
    def learn_once(cls, problem: Problem[Labels]) -> LearnResult:
        """Let the members learn, and find their weights."""
        evidence = TrainingSet.of(problem, _log_prior(problem.labels, problem.settings))
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
        answer = CommitteePredictor(
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
        return LearnResult(answer, report, max(one.fit.n_iter for one in trained), held_out)


def _learnt(evidence: TrainingSet, members: list[Member]) -> list[MemberFit]:
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


def _weights(trained: list[Trained], evidence: TrainingSet) -> Weights:
    labelled = evidence.labelled
    prior_start = evidence.between(*PRIOR_STARTS[evidence.kind])
    return find_weights(trained, evidence.log_prior, labelled.codes, labelled.given, prior_start)


def _left_out(
    missed: list[Trained], evidence: TrainingSet, before: float | None, after: float | None
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


def _with_shares(answer: CommitteePredictor, evidence: TrainingSet) -> CommitteePredictor:
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
