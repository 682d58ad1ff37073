"""Texts that are understood, and classes that nobody has labelled: by a small model made here."""

import json
import struct

import numpy as np
import pandas as pd
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import BigLPError, MissingExtraError
from cli_tools import run

pytestmark = pytest.mark.filterwarnings("ignore:.*rows are tied to no label")
pytest.importorskip("tokenizers", reason='texts are not understood: pip install "biglp[text]"')

TOPICS = {
    "animals": ["cat", "dog", "horse", "bird", "fish", "sheep", "cow", "goat"],
    "food": ["bread", "cheese", "soup", "apple", "rice", "cake", "pasta", "salad"],
    "tools": ["hammer", "saw", "drill", "nail", "wrench", "axe", "screw", "pliers"],
}
COMMON = ["the", "a", "with", "and", "near", "old", "new", "big"]


def text_model(folder, width=16, seed=0):
    """A text model as model2vec saves it, in which the words of a topic mean about the same."""
    rng = np.random.default_rng(seed)
    words = ["[UNK]", *COMMON, *TOPICS, *(word for topic in TOPICS.values() for word in topic)]
    meanings = rng.normal(scale=0.3, size=(len(words), width))
    for axis, (name, topic) in enumerate(TOPICS.items()):
        meanings[[words.index(word) for word in (name, *topic)], axis] += 2.0
    folder.mkdir()
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": "[UNK]",
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    numbers = meanings.astype("<f4").tobytes()
    entry = {"dtype": "F32", "shape": list(meanings.shape), "data_offsets": [0, len(numbers)]}
    header = json.dumps({"embeddings": entry}).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + numbers)
    return str(folder)


def sentences(n=600, seed=1, own_words=3):
    """Texts of a topic each: some of its words among words that all have."""
    rng = np.random.default_rng(seed)
    names = rng.choice(list(TOPICS), n)
    texts = []
    for name in names:
        own, shared = rng.choice(TOPICS[name], own_words), rng.choice(COMMON, 5)
        texts.append(" ".join(rng.permutation([*own, *shared])))
    return pd.DataFrame({"text": texts}), names


@pytest.fixture
def model(tmp_path):
    return text_model(tmp_path / "model")


def test_names_of_classes_alone_label_all_rows(model):
    table, names = sentences()
    fit = LowRankLabelPropagation(text=["text"], text_model=model, classes=list(TOPICS)).fit(table)
    assert (fit.transduction_ == names).mean() > 0.95
    report = fit.report_
    assert report["labelled_rows"] == 0 < report["rows_labelled_by_names"]
    # Nobody has seen a row: nothing is claimed.
    assert report["estimated_accuracy"] is report["held_out_accuracy"] is None
    assert not report["trustworthy"]


def test_descriptions_by_the_values_of_labels(model):
    table, names = sentences()
    codes = {name: code for code, name in enumerate(TOPICS)}
    y = np.full(len(table), -1)
    y[[int(np.flatnonzero(names == "food")[0])]] = codes["food"]
    described = {code: TOPICS[name][0] for name, code in codes.items()}
    fit = LowRankLabelPropagation(text=["text"], text_model=model, classes=described).fit(table, y)
    assert fit.classes_.tolist() == [0, 1, 2]  # two of them have no label
    assert (fit.transduction_ == [codes[name] for name in names]).mean() > 0.95
    assert fit.report_["labelled_rows"] == 1


def test_classes_of_unequal_size(model):
    table, names = sentences(3000)
    few = np.flatnonzero((names != "food") | (np.arange(len(names)) % 10 == 0))
    table, names = table.iloc[few].reset_index(drop=True), names[few]
    fit = LowRankLabelPropagation(text=["text"], text_model=model, classes=list(TOPICS)).fit(table)
    assert (fit.transduction_ == names).mean() > 0.95


def test_a_few_labels_with_and_without_what_texts_mean(model):
    table, names = sentences(1500, own_words=1)
    y = np.full(len(table), None, dtype=object)
    for name in TOPICS:
        y[np.flatnonzero(names == name)[:2]] = name
    known = pd.notna(y)
    right = {}
    for chosen in ("none", model):
        fit = LowRankLabelPropagation(text=["text"], text_model=chosen).fit(table, y)
        right[chosen] = (fit.transduction_ == names)[~known].mean()
    assert right[model] > right["none"] + 0.1
    assert set(fit.report_["views"]) == {"meaning"}


def test_the_same_answers_however_rows_are_cut_and_from_the_file(model, tmp_path):
    table, _ = sentences(3000)
    answers = []
    for changes in ({}, {"engine": "serial"}, {"memory": "400MB"}):
        options = {"text": ["text"], "text_model": model, "classes": list(TOPICS), **changes}
        answers.append(LowRankLabelPropagation(**options).fit(table))
    for other in answers[1:]:
        assert (other.transduction_ == answers[0].transduction_).all()
        np.testing.assert_allclose(
            other.label_distributions_, answers[0].label_distributions_, atol=1e-5
        )
    answers[0].save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    assert (loaded.predict(table) == answers[0].transduction_).all()


def test_a_model_wants_the_text_model_of_its_fit(model, tmp_path):
    table, _ = sentences()
    fit = LowRankLabelPropagation(text=["text"], text_model=model, classes=list(TOPICS)).fit(table)
    fit.save(tmp_path / "model.biglp")
    other = text_model(tmp_path / "other", seed=3)
    (tmp_path / "model").rename(tmp_path / "gone")
    (tmp_path / "other").rename(tmp_path / "model")
    assert other
    from biglp._transforms import text_model as module

    module.text_model.cache_clear()
    with pytest.raises(BigLPError, match=r"text model .* is another one than in fit"):
        LowRankLabelPropagation.load(tmp_path / "model.biglp").predict(table)


def test_from_the_command_line(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, names = sentences()
    table.to_csv("rows.csv", index=False)
    (tmp_path / "names.csv").write_text(
        'class,description\nA,"cat, dog"\nF,"bread, cheese"\nT,hammer\n'
    )
    outcome = run(
        *("fit", "rows.csv", "--text", "text", "--text-model", model, "--classes", "names.csv"),
        *("-o", "out", "--output-format", "csv"),
    )
    assert outcome.exit_code == 0, outcome.output
    assert "from the names of the classes" in outcome.output
    answers = pd.read_csv("out/labels.csv")["label"]
    assert (answers.str.lower() == [name[0] for name in names]).mean() > 0.95
    assert run("predict", "out", "rows.csv", "-o", "again.csv").exit_code == 0
    assert (pd.read_csv("again.csv")["label"] == answers).all()


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (["animals"], "at least two"),
        (["animals", "animals"], "names a class twice"),
        ({"a": "cat", "b": "Cat "}, "in the same words"),
        ({"a": "cat", "b": ""}, "empty name"),
        ("animals", "give a list"),
        (["animals", "xyzzy"], "knows no word of 'xyzzy'"),
    ],
)
def test_names_that_cannot_be_used(model, classes, words):
    table, _ = sentences(60)
    with pytest.raises(BigLPError, match=words):
        LowRankLabelPropagation(text=["text"], text_model=model, classes=classes).fit(table)


def test_names_without_texts():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(BigLPError, match=r"no texts that are understood.*--text.*biglp\[text\]"):
        LowRankLabelPropagation(classes=["one", "two"]).fit(rows)


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_folder_that_is_no_text_model(model, tmp_path, missing):
    table, _ = sentences(60)
    (tmp_path / "model" / missing).write_bytes(b"\x10")
    with pytest.raises(BigLPError, match=r"cannot be read .*model2vec"):
        LowRankLabelPropagation(text=["text"], text_model=model, classes=["a", "b"]).fit(table)
    (tmp_path / "model" / missing).unlink()
    with pytest.raises(BigLPError, match=f"there is no {missing}"):
        LowRankLabelPropagation(text=["text"], text_model=model, classes=["a", "b"]).fit(table)


def test_strange_texts(model):
    table, _ = sentences()
    strange = ["", "x", None, "\N{GRINNING FACE}" * 50, "\u6f22\u5b57", "cat " * 500_000, "\0\t\n"]
    both = pd.concat([table, pd.DataFrame({"text": strange})], ignore_index=True)
    fit = LowRankLabelPropagation(text=["text"], text_model=model, classes=list(TOPICS)).fit(both)
    assert np.isfinite(fit.label_distributions_).all()
    assert fit.transduction_[len(table) + 5] == "animals"


def test_without_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setattr("biglp._transforms.text_model.find_spec", lambda name: None)
    table, _ = sentences(60)
    y = np.where(np.arange(60) < 30, np.arange(60) % 2, -1)
    assert not LowRankLabelPropagation(text=["text"]).fit(table, y).report_.get("views")
    from biglp._transforms import text_model as module

    module.text_model.cache_clear()
    with pytest.raises(MissingExtraError, match=r'pip install "biglp\[text\]"'):
        LowRankLabelPropagation(text=["text"], text_model="somewhere").fit(table, y)


@pytest.mark.parametrize("of", ["a file", "a frame"])
def test_texts_are_taken_apart_once(model, tmp_path, monkeypatch, of):
    from biglp._transforms import text_model as module

    TextModel = module.TextModel
    table, names = sentences()
    table.to_parquet(tmp_path / "rows.parquet")
    counted, counts = [], TextModel.counts
    monkeypatch.setattr(
        TextModel, "counts", lambda self, texts: counted.extend(texts) or counts(self, texts)
    )
    options = {"text": ["text"], "text_model": model, "classes": list(TOPICS)}
    rows = table if of == "a frame" else str(tmp_path / "rows.parquet")
    fit = LowRankLabelPropagation(**options).fit(rows)
    assert (fit.transduction_ == names).mean() > 0.95
    assert len(counted) == len(table) + len(TOPICS)


def embedded(n=900, width=48):
    """Embeddings of three classes, and a vector for each class of the same space."""
    rng = np.random.default_rng(4)
    centres, names = rng.normal(size=(3, width)), rng.integers(0, 3, n)
    rows = centres[names] + rng.normal(scale=1.5, size=(n, width))
    lengths = np.exp(rng.normal(scale=0.3, size=(n, 1)))
    vectors = {name: 3.0 * centre for name, centre in zip(TOPICS, centres, strict=True)}
    return (rows * lengths).astype(np.float32), np.array(list(TOPICS))[names], vectors


def test_vectors_of_classes_alone_label_embeddings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, names, vectors = embedded()
    fit = LowRankLabelPropagation(class_vectors=vectors).fit(rows)
    assert (fit.transduction_ == names).mean() > 0.95
    assert fit.report_["estimated_accuracy"] is None
    pd.DataFrame({"vector": list(rows), "size": rows[:, 0]}).to_parquet("rows.parquet")
    pd.DataFrame({"class": list(vectors), "embedding": list(vectors.values())}).to_parquet(
        "c.parquet"
    )
    words = ("fit", "rows.parquet", "--class-vectors", "c.parquet", "-o", "out")
    outcome = run(*words, "--output-format", "csv")
    assert outcome.exit_code == 0, outcome.output
    assert (pd.read_csv("out/labels.csv")["label"] == names).mean() > 0.95


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ({"a": [1.0, 2.0]}, "two classes or more"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "all of one length"),
        ({"a": [1.0, 2.0], "b": [0.0, 0.0]}, "no direction"),
        ({"a": [1.0, 2.0], "b": [2.0, 1.0]}, "rows of 48 numbers.*by the model that made the rows"),
    ],
)
def test_vectors_that_cannot_be_used(vectors, words):
    with pytest.raises(BigLPError, match=words):
        LowRankLabelPropagation(class_vectors=vectors).fit(embedded(60)[0])
    both = {**embedded(60)[2]}
    with pytest.raises(BigLPError, match="say the same"):
        LowRankLabelPropagation(class_vectors=both, classes=["a", "b"]).fit(embedded(60)[0])
