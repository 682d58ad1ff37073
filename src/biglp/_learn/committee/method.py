"""The committee: its members learn, their weights are found, and together they answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax

from biglp._algebra.balance import given_prior, share_offsets
from biglp._algebra.spreading import mean_label
from biglp._algebra.systems import KEPT_FACTORS, MOST_LABELLED, DenseSystem, SparseSystem
from biglp._core.arrays import to_numpy
from biglp._core.size import EFFORTS, OPTIMIZE, Cost, Size, add_up
from biglp._core.threads import threads_of_one
from biglp._graph.features import not_taken
from biglp._graph.views import views_of
from biglp._labels.doubts import LOOKED_AT_BEFORE, PROBABLY, WRONG_BEFORE, LabelDoubts, find_doubts
from biglp._labels.labels import Labels
from biglp._learn.accuracy import ALARM, TINY, HeldOutLabels, estimate_accuracy, unseen_share
from biglp._learn.base import SAMPLE, HeldOut, LearnResult, Method, Problem, among
from biglp._learn.committee import MEMBERS
from biglp._learn.committee.answer import CommitteePredictor, WeightedModel, scaled_logits, widened
from biglp._learn.committee.find_weights import Trained, find_weights
from biglp._learn.committee.member import DECISIVE, PLENTY, TrainingSet, usual_size
from biglp._learn.committee.starting_weights import STARTING_WEIGHTS
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
VIEW_SHARE = 0.7
"""What the members of a view start with where there are several, of what they have alone."""
SHARE_STEPS, EQUAL_PART = 30, 0.3
WIDEST = 0.2
"""Width of the 90 % interval up to which the estimate of accuracy is something to go by."""


class CommitteeMethod(Method):
    """All members, weighted."""

    unreached = (
        "the members of the committee that learn from labelled rows alone answered for them, which "
        "is less sure. Label some of them, or rows near them: suggest() (biglp suggest) names rows "
        "that are worth a label."
    )

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """What the members and their weights take, and projected rows kept."""
        learnt = min(size.n_labelled, MOST_LABELLED)
        projected = KEPT_BYTES if size.n_features >= PROJECT_ABOVE else 0
        own = Cost(
            libraries=OPTIMIZE,
            fixed=projected + 8 * WEIGHED * learnt * size.n_classes,
            seconds={"learning": 0.5 + size.rank / 2000 + learnt / 1000},
        )
        return add_up([own, *(MEMBERS[name].cost(size) for name in MEMBERS)])

    @classmethod
    def learn(cls, problem: Problem[Labels]) -> LearnResult:
        """Learn; where too many labels seem to be wrong, learn again with less trust in those."""
        labels, lowered = problem.labels, 0
        for again in (False, True):
            learnt, doubts = cls.learn_once(problem), None
            if learnt.held_out is not None and np.isfinite(learnt.held_out.shares).any():
                part = labels.take(np.searchsorted(labels.rows, learnt.held_out.rows))
                doubts = find_doubts(part, learnt.held_out.shares)
            if again or doubts is None or len(doubts.rows) < LEAST_LABELS:
                break
            named = doubts.wrong[doubts.wrong > PROBABLY].sum() >= LEAST_TOLD * doubts.wrong.sum()
            if not named or doubts.error_rate <= EXPECTED:
                break
            problem, lowered = with_less_trust(problem, doubts), doubts.n_probably_wrong
        facts = {
            "probably_wrong_labels": None if doubts is None else doubts.n_probably_wrong,
            "label_error_rate": None if doubts is None else doubts.error_rate,
            "labels_lowered": lowered,
        }
        return replace(learnt, report={**learnt.report, **facts})

    @classmethod
    def learn_once(cls, problem: Problem[Labels]) -> LearnResult:
        """Let the members learn, find their weights, drop those that are not worth their time."""
        labels, settings, graph = problem.labels, problem.settings, problem.graph
        if settings.balance == "given":
            prior = given_prior(settings.class_balance, labels.n_classes)
        elif settings.balance in ("mass", "centre"):
            prior = np.full(labels.n_classes, 1.0 / labels.n_classes)
        else:
            prior = labels.counts + IMAGINED_LABELS
            prior = prior / prior.sum()
        log_prior = np.log(prior) - np.log(prior).mean()
        # Every view of the rows has members of its own.
        views, sets = views_of(graph, problem.sums, len(labels.rows)), []
        for view in views:
            alone = problem if view.places is None else problem.with_views(view.graph, view.sums)
            sets.append(TrainingSet.of(alone))
        evidence = sets[0]
        asked = [
            (view, own, kind, one)
            for view, own in zip(views, sets, strict=True)
            for kind in MEMBERS
            for one in MEMBERS[kind].candidates(own)
        ]

        # Members that use the graph learn in threads, where they take the longest. They spend their
        # time in matrix products and solves, with one BLAS thread each: the numbers are those that
        # they would find one after the other.
        n_threads = min(graph.engine.n_threads, graph.engine.most_at_once)
        many = len(problem.sums.totals) >= SIDE_BY_SIDE and n_threads > 1
        if many and type(evidence.problem.system) in (DenseSystem, SparseSystem):
            with threads_of_one(min(n_threads, KEPT_FACTORS)) as pool:
                waiting = [
                    pool.submit(one.learn, own) for _, own, _, one in asked if one.says_graph
                ]
                others = [one.learn(own) for _, own, _, one in asked if not one.says_graph]
            graphs, rest = iter(waiting), iter(others)
            fits = [next(graphs).result() if one.says_graph else next(rest) for *_, one in asked]
        else:
            fits = [one.learn(own) for _, own, _, one in asked]

        # The graph of a table may be in clusters: that of the largest α tells.
        by_graph = [
            fit
            for (view, _, _, one), fit in zip(asked, fits, strict=True)
            if one.says_graph and view is views[0]
        ]
        if by_graph and evidence.kind == "table" and usual_size(by_graph[-1].sample) > DECISIVE:
            evidence = replace(evidence, kind="clusters")
        # Weights w₀, on a log scale of the labels a class; the prior's is the last. Views see the
        # same rows: what they say together is less than their sum.
        share = 1.0 if len(views) == 1 else VIEW_SHARE
        plenty = np.log(max(len(labels.rows) / labels.n_classes, 1.0)) / np.log(PLENTY)
        starts = [one.starts or (STARTING_WEIGHTS[one.name],) for *_, one in asked]
        rows = [evidence.kind if view is views[0] else own.kind for view, own, *_ in asked]
        *starting, of_prior = (
            sum(
                float(few + min(plenty, 1.0) * (many - few))
                for few, many in (of_kind[kind] for of_kind in each)
            )
            for each, kind in zip(
                (*starts, (STARTING_WEIGHTS["prior"],)), (*rows, evidence.kind), strict=True
            )
        )
        everybody = trained = [
            Trained(
                one, fit, share * start, own.log_counts if one.says_shares else None, kind, view
            )
            for (view, own, kind, one), fit, start in zip(asked, fits, starting, strict=True)
        ]
        told = log_prior, evidence.part.codes, evidence.labelled.given, of_prior
        weights = find_weights(trained, *told)
        with_all = weights.accuracy
        patience = EFFORTS[settings.effort].worth
        trained = [
            one
            for one, weight in zip(everybody, weights.weights, strict=False)
            if one.member.says_graph or weight >= patience * one.member.worth
        ]
        if len(trained) < len(everybody):
            weights = find_weights(trained, *told)
        without_graph = find_weights([one for one in everybody if not one.member.says_graph], *told)

        *of_members, of_prior = weights.weights
        shifts = zip(of_members, weights.biases, strict=True)
        answer = CommitteePredictor(
            bias=sum(weight * bias for weight, bias in shifts) + of_prior * log_prior,
            models=tuple(
                WeightedModel(
                    one.kind, *widened(one.fit.model, one.view), float(scale), float(weight)
                )
                for one, scale, weight in zip(trained, weights.scales, of_members, strict=True)
            ),
        )
        guessed = evidence.part.guessed
        people = np.ones(len(evidence.part.rows), bool) if guessed is None else ~guessed
        sample = evidence.sample_features, evidence.sample_rows
        if len(views) > 1:
            rows_of_all = problem.sample_rows
            sample = to_numpy(graph.features.of_rows(rows_of_all)), to_numpy(rows_of_all)
        if settings.balance == "auto" and not people.any():
            # As many rows of each class are named, whatever its share is: that is told by the rows.
            probabilities = np.asarray(to_numpy(answer.outputs(*sample)[0]), dtype=np.float64)
            answer = replace(answer, bias=answer.bias + np.log(class_shares(probabilities)))
        if settings.balance == "share":  # a sample of rows gets the shares of the labels
            predicted, _ = answer.outputs(*sample)
            logs = np.log(np.maximum(to_numpy(predicted), LEAST_CHANCE)).astype(np.float64)
            offsets = share_offsets(logs, mean_label(labels.counts))
            answer = replace(answer, bias=answer.bias - offsets)

        # What members that were not worth their time, all of them together, would have brought is
        # the difference on held-out labels; and what a larger effort takes more of.
        points = None
        if with_all is not None and weights.accuracy is not None:
            points = 100.0 * (with_all - weights.accuracy)
        left_out = graph.factor.left_out(settings.effort, labels.n_rows)
        for one in everybody:
            if one not in trained and one.fit.model.row_seconds > 0:
                seconds = labels.n_rows * one.fit.model.row_seconds
                left_out.append(not_taken(one.name, 0, 1, seconds, points))
        left_out += [not_taken(*fit.left_out, None) for fit in fits if fit.left_out]
        of_graph = sum(
            weight for one, weight in zip(trained, of_members, strict=True) if one.member.says_graph
        )
        everything = float(weights.weights[:-1].sum())
        helped = None
        if weights.n_held_out >= TRUSTED_LABELS:
            helped = graph_helped(weights.shares, without_graph.shares, evidence.targets)
        report = {
            "members": weights.report,
            "prior_weight": float(of_prior),
            "held_out_labels": weights.n_held_out,
            "held_out_accuracy": weights.accuracy,
            "supervised_accuracy": without_graph.accuracy,
            "unlabelled_rows_helped": helped,
            "graph_share": float(of_graph) / everything if everything > 0 else 0.0,
            "left_out": left_out,
            "spectral_radius": evidence.problem.system.radius,
            **appraise(evidence, trained, answer, weights.shares, people),
        }
        if not people.all():  # what is guessed is no evidence
            known = people & np.isfinite(weights.shares).all(axis=1)
            report["held_out_labels"] = int(known.sum())
            for name, of in (("held_out", weights), ("supervised", without_graph)):
                right = of.shares[known].argmax(axis=1) == evidence.part.codes[known]
                report[f"{name}_accuracy"] = float(right.mean()) if known.any() else None
        held_out = HeldOut(evidence.part.rows[people], weights.shares[people])
        return LearnResult(answer, report, max(one.fit.n_iter for one in trained), held_out)


def appraise(
    evidence: TrainingSet,
    trained: list[Trained],
    answer: CommitteePredictor,
    held_out: np.ndarray,
    people: np.ndarray,
) -> dict[str, Any]:
    """How many rows are right, and whether labels tell: facts for the report.

    ``trained``: the members behind the answer's models, in their order; ``held_out``: (l, c), class
    probabilities of the labelled rows without their own labels; NaN where unknown; ``people``:
    (l,), whether somebody has seen the row of a label.
    """
    problem, targets = evidence.problem, evidence.targets
    labels, sample = problem.labels, problem.graph.sample
    # Class probabilities of the sample, from what the members have said of it.  (b, c).
    total = np.zeros_like(trained[0].fit.sample, dtype=np.float64) + answer.bias
    for model, one in zip(answer.models, trained, strict=True):
        total += model.weight * scaled_logits(one.fit.sample, model.scale)
    probabilities = np.asarray(softmax(total, axis=1))
    unlabelled = probabilities[~among(sample.rows(SAMPLE), labels.rows)]
    known = HeldOutLabels(held_out[people], targets[people])
    estimate = None
    if people.any():
        estimate = estimate_accuracy(known, unlabelled, len(labels.by_people.rows))
    narrow = False
    if estimate is not None:
        names = [str(name) for name in labels.classes.tolist()]
        estimate["recall"] = dict(zip(names, estimate["recall"], strict=True))
        estimate["largest_class"] = names[estimate["largest_class"]]
        low, high = estimate["interval"]
        narrow = high - low <= WIDEST
    each = targets @ (probabilities.mean(axis=0) / np.maximum(targets.sum(axis=0), TINY))
    unseen = None
    if people.all():  # rows that names choose are all on the far side
        unseen = unseen_share(evidence.rows, each, evidence.sample_rows, problem.settings.seed)
    covered = None if unseen is None else unseen < ALARM
    return {
        "estimated_accuracy": estimate,
        "unseen_share": None if unseen is None else round(unseen, 3),
        "labels_cover_rows": covered,
        "trustworthy": covered is not False and (narrow or len(labels.rows) == labels.n_rows),
    }


def class_shares(probabilities: np.ndarray) -> np.ndarray:
    """Shares of the classes among rows, times c, from probabilities of equal classes.  (c,).

    Each step takes the mean of the probabilities under the shares of the step before (expectation
    maximisation); a part of equal shares keeps a class that is found badly from being lost.
    """
    n_classes = probabilities.shape[1]
    shares = np.full(n_classes, 1.0 / n_classes)
    for _ in range(SHARE_STEPS):
        weighed = probabilities * shares
        weighed /= weighed.sum(axis=1, keepdims=True)
        shares = (1.0 - EQUAL_PART) * weighed.mean(axis=0) + EQUAL_PART / n_classes
    return np.asarray(shares * n_classes)


def graph_helped(with_graph: np.ndarray, without: np.ndarray, truth: np.ndarray) -> bool | None:
    """Whether more held-out labels are found with the graph than without.

    Labels that only one of the two finds are like tosses of a coin where neither is better: a
    difference within the spread of so many tosses is none.

    ``with_graph``, ``without``: (l, c), class probabilities; NaN where unknown. ``truth``: w·Y.
    None where there is no difference.
    """
    known = np.isfinite(with_graph).all(axis=1) & np.isfinite(without).all(axis=1)
    likeliest = truth[known].argmax(axis=1)
    change = (with_graph[known].argmax(axis=1) == likeliest).astype(int)
    change -= without[known].argmax(axis=1) == likeliest
    won, differ = int(change.sum()), int(np.abs(change).sum())
    return None if won**2 <= differ else won > 0


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
