"""Columns of sentences: hashed words, alone or beside other columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from biglp import LowRankLabelPropagation
from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows import as_source
from biglp._tables.kinds import N_WORDS
from biglp._transforms import Chain, Parts
from made_tables import articles, some_labels


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "parquet direct"])
def test_words_come_after_the_other_columns(tmp_path, kind):
    frame, _ = articles()
    frame.loc[3, "text"] = None
    options = {"text": ["text"]}
    if kind == "csv":
        frame.to_csv(tmp_path / "x.csv", index=False)
        source = as_source(tmp_path / "x.csv", **options)
    elif kind.startswith("parquet"):
        frame.to_parquet(tmp_path / "x.parquet", row_group_size=70)
        options |= {"cache": "never"} if "direct" in kind else {}
        source = as_source(tmp_path / "x.parquet", **options)
    else:
        source = as_source(frame, **options)
    assert (source.is_sparse, source.words_from, source.n_features) == (True, 4, 4 + N_WORDS)
    rows = source.read(0, 300)
    np.testing.assert_allclose(rows[:, 0].toarray().ravel(), frame["size"])
    np.testing.assert_array_equal(rows[:, 1:4].toarray(), np.tile(np.eye(3), (100, 1)))
    wanted = HashingVectorizer(n_features=N_WORDS, alternate_sign=False, norm=None).transform(
        frame["text"].fillna("")
    )
    assert (rows[:, 4:] != wanted).nnz == 0
    some = np.array([3, 150, 299])
    assert (source.take(some) != rows[some]).nnz == 0
    assert (source.read(60, 150) != rows[60:150]).nnz == 0


def test_text_alone_takes_the_text_path():
    frame, topic = articles()
    y = some_labels(topic, 40)
    model = LowRankLabelPropagation(text=["text"], columns=[]).fit(frame, y)
    assert model.report_["scaling"] == "text"
    assert (model.transduction_ == topic).mean() > 0.9
    assert (model.predict(frame[["text"]]) == model.transduction_).mean() > 0.9


@pytest.mark.filterwarnings("ignore:the labels come from one region")
def test_text_beside_columns(tmp_path):
    frame, topic = articles()
    y = some_labels(topic, 40)
    model = LowRankLabelPropagation(text=["text"]).fit(frame, y)
    assert model.report_["scaling"] == "mixed"
    assert (model.transduction_ == topic).mean() > 0.8
    model.save(tmp_path / "model")
    again = LowRankLabelPropagation.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert model.report_["text_columns"] == ["text"]
    without = LowRankLabelPropagation().fit(frame, y)
    assert "text=['text']" in without.report_["left_out_columns"]["text"]
    assert without.report_["text_columns"] == []


def test_sentences_are_words_where_nothing_else_is_a_feature():
    frame, _ = articles()
    for others in ({}, {"key": [f"k{n}" for n in range(len(frame))]}):
        alone = as_source(frame[["text"]].assign(**others))
        assert alone.encoding.text_columns == ["text"]
        assert alone.is_sparse
        named = as_source(frame[["text"]], text=["text"])
        assert (alone.read(0, 20) != named.read(0, 20)).nnz == 0
    beside = as_source(frame[["text"]].assign(plan=["a", "b", "c"] * (len(frame) // 3)))
    assert beside.encoding.text_columns == []
    assert list(beside.encoding.left_out) == ["text"]
    with pytest.raises(BadRowsError, match="must be numbers"):
        as_source(frame[["text"]], categorical="error")


def test_mixed_scaling_is_both_scalings():
    frame, _ = articles()
    rows = as_source(frame, text=["text"]).read(0, 300)
    chain = Chain([Parts(4)]).fit(rows)
    scaled = chain.apply(rows)
    assert scaled.shape == (300, chain.width(rows.shape[1]))
    np.testing.assert_allclose(scaled[:, 0].std(), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(scaled[:, 4:], axis=1), 1, rtol=1e-5)
    stored = Chain.from_state(chain.state())
    np.testing.assert_array_equal(stored.apply(rows), scaled)


def test_wrong_text_columns():
    frame, _ = articles()
    with pytest.raises(ParameterError, match=r"text: .* has no column 'body'"):
        as_source(frame, text=["body"])
    with pytest.raises(ParameterError, match="must be a list of column names"):
        as_source(frame, text="text")
    with pytest.raises(ParameterError, match=r"text=.* means nothing for an array"):
        as_source(np.eye(3), text=["a"])
    with pytest.raises(BadRowsError, match="columns 'size' hold double where texts are expected"):
        as_source(pa.Table.from_pandas(frame), text=["size"])
