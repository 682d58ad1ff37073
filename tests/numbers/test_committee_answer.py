"""The weighted answer is its formula, also after it was saved."""

import numpy as np
from scipy.special import softmax

from biglp._learn.committee.answer import (
    CommitteePredictor,
    GraphModel,
    WeightedModel,
    graph_logits,
    scaled_logits,
)
from biglp._learn.committee.forest import grow_forest
from biglp._learn.committee.member import LinearModel
from biglp._learn.committee.nearest import Nearest


def test_the_answer_is_the_formula():
    rng = np.random.default_rng(0)
    features, rows = rng.random((50, 4)), rng.normal(size=(50, 6)).astype(np.float32)
    codes = np.arange(50) % 3
    forest, _ = grow_forest(rows, codes, 3, seed=0)
    nearest = Nearest(rows[:20], np.eye(3, dtype=np.float32)[codes[:20]])
    graphs = [GraphModel(rng.random((4, 3))) for _ in range(2)]
    lines = [LinearModel(rng.normal(size=(6, 3)), rng.normal(size=3)) for _ in range(2)]
    answer = CommitteePredictor(
        bias=np.array([0.1, 0.0, -0.1]),
        models=(
            WeightedModel("spread", graphs[0], 0.5, 1.0),
            WeightedModel("spread", graphs[1], 0.7, 2.0),
            WeightedModel("logistic", lines[0], 2.0, 0.3),
            WeightedModel("class means", lines[1], 0.8, 0.4),
            WeightedModel("forest", forest, 1.5, 0.6),
            WeightedModel("nearest labels", nearest, 0.9, 0.2),
        ),
    )
    total = answer.bias
    for weight, graph, scale in zip((1.0, 2.0), graphs, (0.5, 0.7), strict=True):
        logits = graph_logits(features @ graph.coefficients)
        total = total + weight * scaled_logits(logits, scale)
    for weight, line, scale in zip((0.3, 0.4), lines, (2.0, 0.8), strict=True):
        total = total + weight * scaled_logits(line.of(rows), scale)
    total += 0.6 * scaled_logits(forest.of(rows), 1.5)
    total += 0.2 * scaled_logits(nearest.of(rows), 0.9)
    answers, _ = answer.outputs(features, rows)
    np.testing.assert_allclose(answers, softmax(total, axis=1), rtol=1e-5)
    again = CommitteePredictor.from_state(answer.state())
    np.testing.assert_array_equal(again.outputs(features, rows)[0], answers)
