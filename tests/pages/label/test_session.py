"""Sessions on tables: IDs, text, pictures, columns beside, labels from elsewhere; small pools."""

import csv

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp._core.errors import InputError, LabelError
from biglp._labelling import learner as pools
from biglp._labelling.session import Session
from label_tools import client_of, fitted, made_rows, opened, post, wait_for, wanted

EVIL = '<img src=x onerror="alert(1)">'
WORDS = ("the ball was thrown far into the goal", "the shares fell after a bad year for the bank")


def write_table(path, columns):
    """A CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])


@pytest.fixture
def table(tmp_path):
    """A table of texts with IDs; every second one is about money."""
    X, _ = made_rows(120, 2)
    topics = np.arange(120) % 2
    write_table(
        tmp_path / "mails.csv",
        {
            "key": [f"m-{number:03}{EVIL if number == 5 else ''}" for number in range(120)],
            "body": [
                f"{WORDS[topic]}, said number {number} today" + EVIL * (number == 5)
                for number, topic in enumerate(topics)
            ],
            "size": X[:, 0].round(3).tolist(),
            "from": [f"person {number % 7}" for number in range(120)],
            "topic": ["money" if number in (1, 3) else "" for number in range(120)],
        },
    )
    return tmp_path / "mails.csv"


@pytest.fixture
def begin():
    """Opens sessions, and closes them at the end."""
    found = []

    def start(*args, **more):
        found.append(opened(wanted(*args, **more)))
        return found[-1]

    yield start
    for session in found:
        session.close()


TEXT = {"id_column": "key", "reading": {"text": ("body",)}, "label_column": "topic"}


def test_text_ids_and_columns_beside(tmp_path, table, begin):
    session = begin(tmp_path, table, **TEXT, show=("from",))
    client = client_of(session)
    state = client.get("/api/state").json()
    assert state["kind"] == "text"
    assert state["labelled"] == 2  # of the table itself
    card = client.get("/api/row/5").json()
    assert card["id"] == f"m-005{EVIL}"
    assert card["content"]["kind"] == "text"
    assert card["content"]["text"].endswith(EVIL)  # as it is: the page shows text as text
    assert card["shown"] == [{"name": "from", "value": "person 5"}]
    assert "topic" not in [each["name"] for each in card["values"]]
    post(client, "/api/answer", row=5, label="money")
    post(client, "/api/answer", row=4, label="sport")
    with open(tmp_path / "answers.csv", newline="") as file:
        assert list(csv.reader(file)) == [
            ["key", "label"],
            [f"m-005{EVIL}", "money"],
            ["m-004", "sport"],
        ]
    fitted(session)
    card = client.get("/api/row/8").json()
    assert card["guess"]["label"] == "sport"
    assert {each["id"] for each in card["nearest"]} <= {"m-001", "m-003", f"m-005{EVIL}", "m-004"}
    # What fit reads is what was answered, beside what the table says.
    labels = session.wanted.job.label_input.gather(120).labels
    named = dict(zip(labels.rows.tolist(), labels.classes[labels.codes].tolist(), strict=True))
    assert named == {1: "money", 3: "money", 4: "sport", 5: "money"} == session.answers.labelled()


def test_answers_by_id_are_found_again(tmp_path, table, begin):
    (tmp_path / "answers.csv").write_text("key,label\nm-004,sport\nm-007,money\n")
    session = begin(tmp_path, table, **TEXT)
    assert session.answers.own == {4: "sport", 7: "money"}


def test_answers_of_other_rows_are_refused(tmp_path, table):
    (tmp_path / "answers.csv").write_text("key,label\nx-1,sport\n")
    with pytest.raises(LabelError, match="'x-1', which is no entry of column 'key'"):
        Session(wanted(tmp_path, table, **TEXT))
    (tmp_path / "answers.csv").write_text("row,label\n120,sport\n")
    with pytest.raises(LabelError, match="row '120', but the rows are 0 to 119"):
        Session(wanted(tmp_path, table))


def test_a_table_beside_class_means(tmp_path, table, begin):
    session = begin(tmp_path, table, reading={"drop": ("body",)})
    session.view.kind = "table"  # the sentences are text to read otherwise
    client = client_of(session)
    for row in range(8):
        post(client, "/api/answer", row=row, label=f"c{row % 2}")
    fit = fitted(session)
    values = {each["name"]: each for each in client.get("/api/row/9").json()["values"]}
    assert values["from"] == {"name": "from", "value": "person 2", "means": {}}
    sizes = np.array([float(entry["size"]) for entry in session.view.entries(range(120))])
    members = sizes[fit.probabilities.argmax(axis=1) == fit.classes.index("c1")]
    assert float(values["size"]["means"]["c1"]) == pytest.approx(members.mean(), rel=1e-3)


def test_pictures_of_a_column(tmp_path, begin):
    folder = tmp_path / "pictures"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    X, _ = made_rows(40, 3)
    names = [f"{number}.png" for number in range(40)]
    for name in names[1:]:
        (folder / name).write_bytes(b"picture " + name.encode())
    names[0] = "../secret.png"
    columns = {"file": names} | {f"f{place}": X[:, place].tolist() for place in range(3)}
    write_table(tmp_path / "rows.csv", columns)
    reading = {"drop": ("file",)}
    session = begin(tmp_path, tmp_path / "rows.csv", images=folder, reading=reading)
    client = client_of(session)
    assert client.get("/api/state").json()["kind"] == "image"
    reply = client.get("/api/image/7")
    assert reply.content == b"picture 7.png"
    assert reply.headers["content-type"] == "image/png"
    assert "max-age=3600" in reply.headers["cache-control"]
    assert client.get("/api/row/7").json()["content"] == {"kind": "image", "src": "/api/image/7"}
    assert client.get("/api/image/0").status_code == 404
    assert client.get("/api/row/0").json()["content"]["kind"] == "text"


def test_pixels_with_a_table_beside(tmp_path, begin):
    digits = load_digits().data[:60].astype(np.uint8)
    np.save(tmp_path / "digits.npy", digits)
    write_table(tmp_path / "about.csv", {"who": [f"w{number}" for number in range(60)]})
    about = {"metadata": str(tmp_path / "about.csv"), "show": ("who",)}
    session = begin(tmp_path, tmp_path / "digits.npy", **about)
    client = client_of(session)
    assert client.get("/api/state").json()["image"] == {"height": 8, "width": 8, "channels": 1}
    assert client.get("/api/image/3").content.startswith(b"\x89PNG")
    assert client.get("/api/row/3").json()["shown"] == [{"name": "who", "value": "w3"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"show": ("x",)}, "show='x' means nothing for rows without named columns"),
        ({"shape": "3x3"}, "9 pixels, but rows have 5 features"),
        ({"id_column": "x"}, "id_column='x' means nothing"),
        ({"parameters": {"alpha": 3.0}}, "alpha=3.0"),
        ({"labels": ("none.csv",)}, "none.csv"),
    ],
)
def test_options_that_mean_nothing(tmp_path, options, message):
    np.save(tmp_path / "rows.npy", made_rows(50)[0])
    with pytest.raises(InputError, match=message):
        Session(wanted(tmp_path, tmp_path / "rows.npy", **options))
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]
    Session(wanted(tmp_path, tmp_path / "rows.npy")).close()  # the files were let go of


class TestSmallPool:
    """A pool of 200 of 1,000 rows."""

    @pytest.fixture
    def session(self, tmp_path, begin, monkeypatch):
        monkeypatch.setattr(pools, "POOL_ROWS", 200)
        self.X, self.truth = made_rows(1000)
        np.save(tmp_path / "rows.npy", self.X)
        (tmp_path / "answers.csv").write_text("row,label\n3,c0\n997,c1\n")
        return begin(tmp_path, tmp_path / "rows.npy")

    def test_labelled_rows_are_in_it(self, session):
        rows = session.loop.learner.pool.rows
        assert len(rows) == 200
        assert {3, 997} <= set(rows.tolist())
        state = client_of(session).get("/api/state").json()
        assert (state["rows"], state["pool_rows"]) == (1000, 200)

    def test_rows_outside_can_be_labelled_and_count(self, session):
        client = client_of(session)
        inside = set(session.loop.learner.pool.rows.tolist())
        outside = [row for row in range(1000) if row not in inside]
        some = outside[:30]
        for code in range(3):
            rows = [row for row in some if self.truth[row] == code]
            post(client, "/api/answers", rows=rows, label=f"c{code}")
        post(client, "/api/undo")
        fit = fitted(session)
        assert fit.n_labels == len(session.answers.labelled())
        assert session.loop.learner.pool.n_rows >= 200 + fit.n_labels - 2
        card = client.get(f"/api/row/{outside[-1]}").json()
        assert card["guess"] is not None
        assert card["nearest"]
        inner = int(session.loop.learner.pool.rows[7])
        stored = session.source.read(inner, inner + 1)
        np.testing.assert_allclose(fit.shares_of(stored)[0], fit.probabilities[7], atol=1e-4)

    def test_the_map_has_all_rows(self, session):
        client = client_of(session)
        wait_for(lambda: client.get("/api/state").json()["map_points"] == 1000)
        points = np.frombuffer(client.get("/api/map/rows").content, "<i8")
        assert sorted(points) == list(range(1000))
        for row in range(0, 30):
            post(client, "/api/answer", row=row, label=f"class {self.truth[row]}")
        post(client, "/api/answers", rows=[3, 997], label=f"class {self.truth[3]}")
        wait_for(lambda: session.loop.fit and session.loop.fit.version == session.answers.version)
        colours = np.frombuffer(client.get("/api/map/colours").content, np.uint8).reshape(-1, 2)
        names = np.array(session.answers.classes)[colours[:, 0]]
        assert np.mean(names == [f"class {self.truth[row]}" for row in points]) > 0.9

    def test_finish_labels_all_rows(self, session, tmp_path):
        client = client_of(session)
        for row in range(0, 30):
            post(client, "/api/answer", row=row, label=f"class {self.truth[row]}")
        client.post("/api/finish", json={})
        wait_for(lambda: session.finishing.state()["state"] != "running")
        assert session.finishing.state()["state"] == "done"
        assert len(np.load(tmp_path / "out" / "labels.npy")) == 1000


def test_labels_of_earlier_files_count_and_are_not_changed(tmp_path, begin):
    X, truth = made_rows(100)
    np.save(tmp_path / "rows.npy", X)
    given = np.full(100, -1)
    given[:20] = truth[:20]
    np.save(tmp_path / "labels.npy", given)
    before = (tmp_path / "labels.npy").read_bytes()
    session = begin(tmp_path, tmp_path / "rows.npy", labels=(str(tmp_path / "labels.npy"),))
    client = client_of(session)
    state = client.get("/api/state").json()
    assert state["labelled"] == 20
    assert {each["key"] for each in state["classes"]} == {"0", "1", "2"}
    post(client, "/api/answer", row=0, label=str((truth[0] + 1) % 3))
    assert (tmp_path / "labels.npy").read_bytes() == before
    labels = session.wanted.job.label_input.gather(100).labels
    assert labels.codes[0] == (truth[0] + 1) % 3
    assert len(labels.rows) == 20


def test_a_model_that_cannot_be_fitted_is_told(tmp_path, begin):
    np.save(tmp_path / "rows.npy", made_rows(100)[0])
    want = wanted(tmp_path, tmp_path / "rows.npy", parameters={"memory": "70MB"})
    session = Session(want)
    try:
        session.start()
        wait_for(lambda: session.loop.problem is not None)
        state = client_of(session).get("/api/state").json()
        assert "--memory" in state["model"]["problem"]
        cards = client_of(session).get("/api/next").json()["cards"]
        assert post(client_of(session), "/api/answer", row=cards[0]["row"], label="a")["saved"]
    finally:
        session.close()
