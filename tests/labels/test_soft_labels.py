"""Label distributions, weights and clamping: in arrays, in files, and against the dense truth."""

import json

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._answers.spreading import LABELS_TO_CHOOSE
from biglp._core.errors import LabelError, ParameterError
from biglp._jobs.fit import FitJob
from biglp._jobs.inputs import LabelInput
from biglp._labels.labels import encode_labels, labels_from_pairs
from biglp._propagate.leave_one_out import LabelledRows, leave_one_out, left_alone
from biglp._propagate.sums import GramSums
from biglp._propagate.systems import Spectrum
from biglp.baselines import DensePropagation, NearestNeighbours
from cli_tools import done, failed
from helpers import blobs, model, rows_in_a_block

ALPHA = 0.9


def soft_problem(seed=0, **changes):
    """Rows, label distributions (zeros where unknown), weights and landmarks."""
    X, y, _ = blobs(**changes)
    rng = np.random.default_rng(seed)
    Y = np.zeros((len(X), 3))
    known = y >= 0
    Y[known] = 0.2 * rng.dirichlet(np.ones(3), known.sum()) + 0.8 * np.eye(3)[y[known]]
    weights = rng.integers(1, 4, len(X)).astype(float)
    return X, y, Y, weights, X[rng.choice(len(X), 20, replace=False)]


def graph(X, L):
    return ref.normalised_graph(ref.anchor_graph(X, L, 1.5, 3))


def expected_answers(X, L, Y, prior):
    F = ref.closed_form(graph(X, L), Y, ALPHA)
    return ref.probabilities(ref.balanced(F, Y, ALPHA, prior), prior)


def test_distributions_and_weights_propagate_as_in_the_dense_reference():
    X, _, Y, weights, L = soft_problem()
    fitted = model(landmarks=L, alpha=ALPHA).fit(X, 7.0 * Y, sample_weight=weights)
    expected = expected_answers(X, L, weights[:, None] * Y, np.full(3, 1 / 3))
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-9)
    assert fitted.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("rows", [7, 64])
@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_integer_weights_are_repeated_labels(rows, engine):
    X, y, _, weights, L = soft_problem()
    repeated = np.zeros((len(X), 3))
    for i in np.flatnonzero(y >= 0):
        for _ in range(int(weights[i])):
            repeated[i, y[i]] += 1.0
    with rows_in_a_block(rows):
        fitted = model(landmarks=L, engine=engine).fit(X, y, sample_weight=weights)
    expected = expected_answers(X, L, repeated, np.full(3, 1 / 3))
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-9)


def test_a_prior_from_the_labels_counts_their_weights():
    X, y, _, weights, L = soft_problem()
    given = np.eye(3)[y] * (y >= 0)[:, None] * weights[:, None]
    share = given.sum(axis=0) / given.sum()
    fitted = model(landmarks=L, class_balance="none").fit(X, y, sample_weight=weights)
    expected = ref.probabilities(ref.closed_form(graph(X, L), given, ALPHA), share)
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_leave_one_out_is_refitting_without_each_weighted_distribution(alpha):
    X, _, Y, weights, L = soft_problem(n=60, labelled=15)
    given = weights[:, None] * Y
    Z = ref.anchor_weights(X, L, 1.5, 3)
    features = Z / np.sqrt(Z.sum(axis=0))
    known = np.flatnonzero(given.any(axis=1))
    sums = GramSums(
        features.T @ features,
        features.T @ given,
        features.sum(axis=0),
        given.sum(axis=0),
        len(X),
    )
    labelled = LabelledRows(features[known], Y[known].argmax(axis=1), given[known])
    scores, masses = leave_one_out(Spectrum.of(sums), labelled, alpha)
    expected_scores, expected_masses = ref.leave_one_out(graph(X, L), given, alpha)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-10)
    np.testing.assert_allclose(masses, expected_masses, rtol=1e-8)


def test_rows_left_alone_are_those_whose_class_has_no_other_label():
    targets = np.array([[0.3, 0.0, 0.0], [0.0, 0.7, 0.1], [0.0, 0.0, 0.2], [0.0, 0.1, 0.0]])
    assert left_alone(targets.sum(axis=0), targets).tolist() == [True, False, False, False]


def test_one_hot_distributions_and_weights_of_one_are_plain_labels():
    X, y, *_ = soft_problem()
    plain = LowRankLabelPropagation(engine="serial").fit(X, y)
    table = np.where((y >= 0)[:, None], np.eye(3)[y], np.nan)
    for given, weights in ((table, None), (sparse.csr_matrix(np.nan_to_num(table)), None)):
        same = LowRankLabelPropagation(engine="serial").fit(X, given, sample_weight=weights)
        np.testing.assert_array_equal(same.label_distributions_, plain.label_distributions_)
    ones = LowRankLabelPropagation(engine="serial").fit(X, y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(ones.label_distributions_, plain.label_distributions_)


@pytest.mark.parametrize("factor", ["auto", "anchors"])
def test_labels_without_weight_are_no_labels_and_other_weights_of_unlabelled_rows_are_ignored(
    factor,
):
    X, y, _, weights, _ = soft_problem()
    dropped = np.flatnonzero(y >= 0)[::4]
    fewer = y.copy()
    fewer[dropped] = -1
    zeros = weights.copy()
    zeros[dropped] = 0.0
    wild = np.where(fewer < 0, np.nan, weights)  # not looked at where there is no label
    chosen = LowRankLabelPropagation(factor, engine="serial")
    with_zeros = chosen.fit(X, y, sample_weight=zeros).label_distributions_
    np.testing.assert_array_equal(
        chosen.fit(X, fewer, sample_weight=wild).label_distributions_, with_zeros
    )


def test_the_committee_listens_to_weights():
    """Labels that are wrong in places do less harm when they are known to be doubtful."""
    X, y, truth = blobs(n=600, labelled=60, spread=1.3)
    known = np.flatnonzero(y >= 0)
    wrong = known[::3]
    y[wrong] = (y[wrong] + 1) % 3
    weights = np.ones(len(X))
    weights[wrong] = 0.02
    unknown = np.setdiff1d(np.arange(len(X)), known)

    def accuracy(**given):
        fitted = LowRankLabelPropagation(engine="serial").fit(X, y, **given)
        assert np.isfinite(fitted.label_distributions_).all()
        return (fitted.transduction_ == truth)[unknown].mean()

    assert accuracy(sample_weight=weights) > accuracy() + 0.03


def test_the_committee_takes_distributions_and_trusts_weighty_labels_more():
    X, y, _, _, _ = soft_problem(labelled=30)
    known = np.flatnonzero(y >= 0)
    Y = np.where((y >= 0)[:, None], 0.1 + 0.7 * np.eye(3)[y], 0.0)
    fitted = LowRankLabelPropagation(engine="serial").fit(X, Y)
    assert fitted.report_["held_out_accuracy"] < 0.85  # of labels that are sure to 80 % only
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1.0)
    weights = np.full(len(X), 2.0)
    doubts = []
    for given in (None, weights):
        sure = LowRankLabelPropagation(engine="serial").fit(X, y, sample_weight=given)
        doubts.append(1.0 - sure.label_distributions_[known, y[known]])
    assert doubts[0].max() <= 0.05
    assert doubts[1].max() <= 0.05**2 * (1 + 1e-6)


@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom"])
def test_hard_clamping_keeps_exactly_what_was_given(factor):
    X, y, Y, *_ = soft_problem()
    known = y >= 0
    settings = {"engine": "serial", "n_landmarks": 20}
    hard = LowRankLabelPropagation(factor, clamp="hard", **settings).fit(X, Y)
    soft = LowRankLabelPropagation(factor, **settings).fit(X, Y)
    np.testing.assert_allclose(hard.label_distributions_[known], Y[known], rtol=1e-12)
    assert np.abs(soft.label_distributions_[known] - Y[known]).max() > 1e-3
    np.testing.assert_array_equal(
        hard.label_distributions_[~known], soft.label_distributions_[~known]
    )
    np.testing.assert_array_equal(hard.predict_proba(X), soft.predict_proba(X))


def test_hard_clamping_keeps_a_label_that_the_graph_would_overrule():
    X, y, truth = blobs(n=300, labelled=60, spread=0.3)
    odd = np.flatnonzero(y >= 0)[0]
    y[odd] = (truth[odd] + 1) % 3
    assert model(alpha=0.99).fit(X, y).transduction_[odd] == truth[odd]
    assert model(alpha=0.99, clamp="hard").fit(X, y).transduction_[odd] == y[odd]


def test_names_of_the_columns():
    Y = np.array([[0.9, 0.1], [0.2, 0.8], [0.0, 0.0]])
    labels = encode_labels(Y, 3, classes=["no", "yes"])
    assert labels.classes.tolist() == ["no", "yes"]
    assert labels.rows.tolist() == [0, 1]
    assert labels.codes.tolist() == [0, 1]
    for bad in (["a"], ["a", "a"], ["a", "b", "c"]):
        with pytest.raises(ParameterError, match="2 different names, one for each column"):
            encode_labels(Y, 3, classes=bad)
    with pytest.raises(ParameterError, match="leave classes out"):
        encode_labels([0, 1, -1], 3, classes=[0, 1])


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([[0.5, -0.5], [1, 0]], None, r"row 0: \[0\.5, -0\.5\]\. Give numbers of 0 or more"),
        ([[1, 0], [np.nan, 1]], None, r"no label distribution in row 1"),
        ([[1, 0], [np.inf, 1]], None, r"no label distribution in row 1"),
        ([[1, 0], [1, 0]], None, r"class 1 no share in any of the 2 labelled rows"),
        ([[0, 0], [np.nan, np.nan]], None, r"none of the 2 rows has a label"),
        ([[1, 0], [0, 1], [0, 0]], None, r"3 rows of label distributions but X has 2"),
        ([["a", "b"], ["a", "b"]], None, r"label distributions, which are numbers"),
        ([0, 1], [1.0, -1.0], r"label of row 1 has weight -1\.0; give finite weights"),
        ([0, 1], [np.nan, 1.0], r"label of row 0 has weight nan"),
        ([0, 1], [1.0], r"sample_weight has shape \(1,\), but must be 1D with 2 numbers"),
        ([0, 1], [[1.0, 1.0]], r"must be 1D with 2 numbers"),
        ([0, 1], ["a", "b"], r"must be 1D with 2 numbers"),
        ([0, 1], [0, 0], r"none of the 2 rows has a label .* weight zero"),
        ([0, 1], [0, 1], r"only one class, 1,"),
        ([[1, 0], [0, 1]], [0, 1], r"class 0 no share"),
        ([[1, 0], [0, 1]], [0, 0], r"none of the 2 rows has a label"),
    ],
)
def test_distributions_and_weights_that_cannot_be_used_are_refused(y, weights, message):
    with pytest.raises(LabelError, match=message):
        encode_labels(y, 2, weights)


def test_the_baselines_refuse_distributions():
    X, _, Y, _, _ = soft_problem()
    for baseline in (DensePropagation(), NearestNeighbours()):
        with pytest.raises(LabelError, match="the baselines do not take"):
            baseline.fit(X, Y)


def test_huge_tables_keep_only_their_labelled_rows():
    n = 3_000_000
    table = sparse.csr_matrix(([0.25, 0.75, 1.0], ([5, 5, n - 1], [0, 1, 0])), shape=(n, 2))
    labels = encode_labels(table, n)
    assert labels.rows.tolist() == [5, n - 1]
    np.testing.assert_allclose(labels.distribution, [[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(labels.counts, [1.25, 0.75])


def test_rows_that_occur_several_times_make_distributions():
    rows, values = np.array([2, 2, 4, 7, 7]), np.array(["a", "b", "b", "a", "a"])
    labels = labels_from_pairs(rows, values, 9, np.array([0.3, 0.7, 1.0, 1.0, 2.0]))
    assert labels.rows.tolist() == [2, 4, 7]
    assert labels.codes.tolist() == [1, 1, 0]
    np.testing.assert_allclose(labels.distribution, [[0.3, 0.7], [0, 1], [1, 0]])
    np.testing.assert_allclose(labels.weights, [1, 1, 3])
    hard = labels_from_pairs(rows[2:], values[2:], 9, np.array([1.0, 1.0, 2.0]))
    assert hard.distribution is None
    np.testing.assert_allclose(hard.counts, [3, 1])


@pytest.mark.parametrize("names", ["row,label,weight\n", "Weight,row,y\n", ""])
def test_a_file_of_rows_labels_and_weights(tmp_path, names):
    lines = ["3,cat,0.5", "1,dog,2", "5,,9", "3,dog,1.5", "6,dog,0"]
    if names.startswith("Weight"):
        lines = [",".join([line.split(",")[2], *line.split(",")[:2]]) for line in lines]
    path = tmp_path / "labels.csv"
    path.write_text(names + "\n".join(lines) + "\n")
    labels = LabelInput(str(path), None).read(8)
    assert labels.classes.tolist() == ["cat", "dog"]
    assert labels.rows.tolist() == [1, 3]
    np.testing.assert_allclose(labels.distribution, [[0, 1], [0.25, 0.75]])
    np.testing.assert_allclose(labels.weights, [2, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,label,weight\n1,a,-1\n2,b,1\n", r"label of row 1 has weight -1"),
        ("row,label,weight\n1,a,\n2,b,1\n", r"label of row 1 has weight nan"),
        ("row,label,weight\n1,a,much\n2,b,1\n", r"column 'weight' must hold weights"),
        ("row,label\n1,a\n1,b\n2,b\n", r"gives row 1 two labels, a and b"),
    ],
)
def test_files_of_weights_that_cannot_be_used_are_refused(tmp_path, text, message):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(LabelError, match=message):
        LabelInput(str(path), None).read(8)


def write_table(path, X, y, weights):
    names = [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, "y", "w"])]
    for row, label, weight in zip(X.tolist(), y.tolist(), weights.tolist(), strict=True):
        shown = ["", ""] if label < 0 else [str(label), str(weight)]
        lines.append(",".join([*map(repr, row), *shown]))
    path.write_text("\n".join(lines) + "\n")


def test_weights_in_a_table_are_no_feature_and_weigh_the_labels(tmp_path):
    X, y, _, weights, _ = soft_problem()
    write_table(tmp_path / "rows.csv", X, y, weights)
    parameters = {"factor": "anchors", "alpha": 0.9, "class_balance": "none", "n_landmarks": 20}
    job = FitJob(
        (str(tmp_path / "rows.csv"),),
        tmp_path / "out",
        outputs=("label", "probabilities"),
        output_format="npy",
        label_column="y",
        weight_column="w",
        parameters={**parameters, "clamp": "hard"},
    )
    summary = job.run()
    assert summary["features"] == 5
    assert sum(summary["given"].values()) == (y >= 0).sum()
    direct = LowRankLabelPropagation(**parameters, clamp="hard", engine="serial")
    direct.fit(X, y, sample_weight=weights)
    found = np.load(tmp_path / "out" / "probabilities.npy")
    np.testing.assert_allclose(found, direct.label_distributions_, atol=1e-6)
    plain = LowRankLabelPropagation(**parameters, engine="serial").fit(X, y)
    assert np.abs(found - plain.label_distributions_).max() > 0.01
    saved = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert saved["run"]["labels"]["weight column"] == "w"


def test_a_weight_column_that_is_not_there_is_refused(tmp_path):
    X, y, _, weights, _ = soft_problem()
    write_table(tmp_path / "rows.csv", X, y, weights)
    source = LabelInput(str(tmp_path / "rows.csv"), "y", weight_column="v")
    with pytest.raises(ParameterError, match=r"weight column: .* no column 'v'; it has"):
        source.read(len(X))


def test_rows_and_not_weights_tell_whether_leave_one_out_is_asked():
    X, y, _ = blobs(labelled=3 * LABELS_TO_CHOOSE)
    light = model(alpha="auto", class_balance="auto").fit(X, y, sample_weight=np.full(len(X), 0.1))
    assert light.report_["leave_one_out_accuracy"] is not None


def test_weights_clamping_and_filters_from_the_command_line(tmp_path):
    X, y, _, weights, _ = soft_problem()
    write_table(tmp_path / "rows.csv", X, y, weights)
    common = ["fit", tmp_path / "rows.csv", "--label-column", "y", "-k", 20, "--quiet"]
    done(*common, "--weight-column", "w", "-o", tmp_path / "a", "--clamp", "hard")
    done(*common, "--weight-column", "w", "-o", tmp_path / "b", "--filter", "poisson")
    summaries = [json.loads((tmp_path / name / "summary.json").read_text()) for name in "ab"]
    assert [summary["features"] for summary in summaries] == [5, 5]
    assert summaries[0]["run"]["option"]["clamp"] == "hard"
    assert summaries[1]["settings"]["filter"] == "poisson"
    planned = done(*common[:-1], "--weight-column", "w", "-o", tmp_path / "c", "--dry-run")
    assert "× 5 features" in planned.output
    looked = done("inspect", tmp_path / "rows.csv", "--label-column", "y", "--weight-column", "w")
    assert "× 5 " in looked.output
    # Without the column of weights it is another run, and one more feature.
    message = failed(5, *common, "-o", tmp_path / "a", "--resume")
    assert "weight column was w and is now" in message


def test_a_file_of_weights_that_changes_makes_another_run(tmp_path):
    X, _, _, _, _ = soft_problem()
    np.save(tmp_path / "rows.npy", X)
    lines = ["row,label,weight", "0,a,1", "1,b,1", "2,a,0.5", "3,b,2"]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    command = ["fit", tmp_path / "rows.npy", "--labels", tmp_path / "labels.csv", "-k", 20, "-q"]
    done(*command, "-o", tmp_path / "out")
    (tmp_path / "labels.csv").write_text("\n".join([*lines[:-1], "3,b,22"]) + "\n")
    assert "labels.csv was" in failed(5, *command, "-o", tmp_path / "out", "--resume")
