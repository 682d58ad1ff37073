"""A session: what the page asks and gets, on arrays, tables, texts and pictures, from elsewhere."""

import asyncio
import csv
import io
import json

import numpy as np
import pytest

from biglp._core import InputError, LabelError
from biglp._labelling import Page, Session
from biglp._labels import LabelInput
from label_tools import client_of, fitted, made_rows, opened, post, wait_for, wanted

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def begin():
    found = []

    def start(*args, **more):
        found.append(opened(wanted(*args, **more)))
        return found[-1]

    yield start
    for session in found:
        session.close()


@pytest.fixture(scope="module")
def rows():
    return made_rows(600)


@pytest.fixture
def session(tmp_path, rows, begin):
    np.save(tmp_path / "rows.npy", rows[0])
    return begin(tmp_path, tmp_path / "rows.npy")


@pytest.fixture
def client(session):
    return client_of(session)


def label_next(client, truth, n):
    cards = client.get("/api/next").json()["cards"]
    for _ in range(n):
        row = cards[0]["row"]
        cards = post(client, "/api/answer", row=row, label=f"class {truth[row]}")["next"]
    return cards


def test_from_zero_to_a_model_and_all_rows(session, client, rows, tmp_path):
    X, truth = rows
    state = client.get("/api/state").json()
    assert state["rows"] == state["pool_rows"] == 600
    assert (state["kind"], state["classes"], state["model"]["state"]) == ("table", [], "none")
    card = client.get("/api/next?n=1").json()["cards"][0]
    assert card["guess"] is None
    assert card["label"] is None
    assert [value["name"] for value in card["values"]] == [f"feature {i}" for i in range(5)]
    assert client.post("/api/finish", json={}).status_code == 400  # nothing to learn from
    cards = label_next(client, truth, 24)
    fit = fitted(session)
    assert fit.n_labels == 24
    answered = np.array(fit.classes)[fit.probabilities.argmax(axis=1)]
    assert np.mean(answered == [f"class {code}" for code in truth]) > 0.95
    card = client.get(f"/api/row/{cards[0]['row']}").json()
    assert card["guess"] == card["probabilities"][0]
    assert sum(each["probability"] for each in card["probabilities"]) == pytest.approx(1, abs=1e-3)
    assert len(card["nearest"]) == 4
    near, others = (
        np.linalg.norm(session.source.take(np.sort([*named])) - X[card["row"]], axis=1).mean()
        for named in ((each["row"] for each in card["nearest"]), session.answers.own)
    )
    assert near < others
    mean = float(card["values"][0]["means"]["class 0"])
    assert mean == pytest.approx(X[truth == 0, 0].mean(), abs=0.5)
    state = client.get("/api/state").json()
    assert state == client_of(session).get("/api/state").json()  # two pages agree
    assert state["labelled"] == sum(each["labelled"] for each in state["classes"]) == 24
    assert sum(each["found"] for each in state["classes"]) == pytest.approx(600, abs=3)
    assert [each["key"] for each in state["classes"]] == ["1", "2", "3"]
    assert 0 <= state["estimate"]["low"] <= state["estimate"]["accuracy"] <= 1
    assert state["history"][-1]["labels"] == 24
    assert "more labels" in state["next_gain"]
    # All rows are fitted at the end, and fit reads what was answered.
    assert client.post("/api/finish", json={}).status_code == 200
    wait_for(lambda: session.finishing.state()["state"] != "running")
    state = client.get("/api/state").json()["finish"]
    assert state["state"] == "done", state
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"labels.npy", "model.biglp", "summary.json"}
    assert len(np.load(tmp_path / "out" / "labels.npy")) == 600
    labels = LabelInput(None, labels=(str(tmp_path / "answers.csv"),)).gather(600).labels
    read = zip(labels.rows, labels.classes[labels.codes], strict=True)
    assert dict(read) == session.answers.own


def test_cards_are_never_of_labelled_or_skipped_rows_and_a_restart_goes_on(session, client, begin):
    seen = set()
    cards = client.get("/api/next?n=20").json()["cards"]
    for number in range(30):
        assert len({card["row"] for card in cards}) == len(cards)
        assert not seen & {card["row"] for card in cards}
        row = cards[0]["row"]
        seen.add(row)
        if number % 3:
            cards = post(client, "/api/answer", row=row, label=f"c{number % 2}")["next"]
        else:
            cards = post(client, "/api/skip", row=row)["next"]
    client.post("/api/classes", json={"add": "later"})
    before = client.get("/api/state").json()
    assert before["skipped"] == 10
    session.close()
    again = opened(session.wanted)
    try:
        fitted(again)
        state = client_of(again).get("/api/state").json()
        assert state["server"] != before["server"]
        for key in ("labelled", "skipped", "can_undo", "rows", "labels_file"):
            assert state[key] == before[key]
        names = [[each["name"] for each in one["classes"]] for one in (state, before)]
        assert names[0] == names[1]
        fresh = client_of(again).get("/api/next").json()["cards"]
        assert not {card["row"] for card in fresh} & seen
    finally:
        again.close()


def test_an_answer_of_many_rows_is_one_step_and_counts_once(session, client):
    sent = {"rows": [3, 1, 2, 3], "label": "a", "answer": "one"}
    for path in ("/api/answers", "/api/answers"):
        assert client.post(path, json=sent).json()["saved"]
    assert client.post("/api/answer", json={**sent, "row": 6}).json()["saved"]
    assert session.answers.own == {3: "a", 1: "a", 2: "a"}
    assert post(client, "/api/undo")["undone"] == {"rows": [3, 1, 2], "label": "a"}
    assert session.answers.own == {}
    assert not client.get("/api/state").json()["can_undo"]


def test_classes_are_added_and_renamed_and_a_wrong_label_is_found(session, client, rows):
    truth = rows[1]
    label_next(client, truth, 40)
    row = next(iter(session.answers.own))
    post(client, "/api/answer", row=row, label=f"class {(truth[row] + 1) % 3}")
    fitted(session)
    doubts = client.get("/api/doubts").json()["rows"]
    assert (doubts[0]["row"], doubts[0]["suggested"]) == (row, f"class {truth[row]}")
    assert client.post("/api/classes", json={"add": EVIL}).status_code == 200
    assert client.post("/api/classes", json={"rename": "class 0", "to": "zero"}).status_code == 200
    names = [each["name"] for each in client.get("/api/state").json()["classes"]]
    assert sorted(names) == sorted([EVIL, "class 1", "class 2", "zero"])
    card = client.get("/api/next").json()["cards"][0]
    assert {each["label"] for each in card["probabilities"]} == {"zero", "class 1", "class 2"}
    reply = client.post("/api/classes", json={"rename": "zero", "to": "class 1"})
    assert reply.status_code == 400
    assert "already" in reply.json()["error"]


def test_export(client):
    post(client, "/api/answer", row=4, label='a "b", c')
    post(client, "/api/answer", row=2, label=EVIL)
    reply = client.get("/api/export?format=csv")
    assert "attachment" in reply.headers["content-disposition"]
    lines = list(csv.reader(io.StringIO(reply.text)))
    assert lines == [["row", "label"], ["4", 'a "b", c'], ["2", EVIL]]
    lines = client.get("/api/export?format=jsonl").text.splitlines()
    assert [json.loads(line) for line in lines][1] == {"row": 2, "label": EVIL}
    assert client.get("/api/export?format=exe").status_code == 400


REFUSED = [
    *(("answer", {"row": row, "label": "a"}) for row in (-1, 600, "1", True)),
    *(("answer", {"row": 1, "label": name}) for name in ("", "NA", 5)),
    *(("answer", {"row": 1, "label": "a", "answer": name}) for name in ("", "x" * 500)),
    *(("answers", {"rows": rows, "label": "a"}) for rows in ([], 3, [1, 999])),
    ("skip", {"row": 10**30}),
    ("classes", {"rename": "nothing", "to": "a"}),
    ("classes", {"add": "a\nb"}),
]
ELSEWHERE = ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2fserver.py"]
ELSEWHERE += ["/static//etc/passwd", "/../answers.csv", "/api/row/-1", "/api/row/x", "/api/row/600"]
ELSEWHERE += ["/api/image/1", "/api/image/..%2f..%2fanswers.csv"]


def test_what_is_refused_changes_nothing(session, client):
    for path, given in REFUSED:
        reply = client.post(f"/api/{path}", json={"answer": "one", **given})
        assert (reply.status_code, bool(reply.json()["error"])) == (400, True), (path, given)
    for content in (b"{", b"[1]"):
        assert client.post("/api/answer", content=content).status_code == 400
    for path in ELSEWHERE:
        reply = client.get(path)
        assert reply.status_code in (400, 404), path
        assert "import" not in reply.text
    assert session.answers.own == {}
    assert session.wanted.path.read_text() == "row,label\n"


def test_events_tell_of_changes_and_end_with_the_server(session):
    async def listen():
        page, sent, heard = Page(session), [], asyncio.Event()

        async def send(message):
            sent.append(message.get("body", b"").decode())
            heard.set()

        async def receive():
            await asyncio.Event().wait()  # the browser stays

        async def hear(n_events):
            while True:
                lines = [line for line in sent if line.startswith("data: ")]
                if len(lines) >= n_events:
                    return [json.loads(line.removeprefix("data: ")) for line in lines]
                await asyncio.wait_for(heard.wait(), 60)
                heard.clear()

        scope = {"type": "http", "method": "GET", "path": "/api/events", "query_string": b""}
        stream = asyncio.create_task(page.app()({**scope, "headers": []}, receive, send))
        (first,) = await hear(1)
        assert first["server"] == session.id
        await asyncio.to_thread(session.label, [1], "a", "one")
        assert (await hear(2))[1]["version"] > first["version"]
        page.closing.set()
        session.changed()
        await asyncio.wait_for(stream, 60)

    asyncio.run(listen())


# Tables, texts, labels from elsewhere, small pools ------------------------------------------------

IMAGE = '<img src=x onerror="alert(1)">'
WORDS = ("the ball was thrown far into the goal", "the shares fell after a bad year for the bank")
TEXT = {"id_column": "key", "reading": {"text": ("body",)}, "label_column": "topic"}


@pytest.fixture
def table(tmp_path):
    X, _ = made_rows(120, 2)
    with open(tmp_path / "mails.csv", "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["key", "body", "size", "from", "topic"])
        for row in range(120):
            odd = IMAGE * (row == 5)
            text = f"{WORDS[row % 2]}, said number {row} today{odd}"
            topic = "money" if row in (1, 3) else ""
            lines.writerow([f"m-{row:03}{odd}", text, X[row, 0], f"person {row % 7}", topic])
    return tmp_path / "mails.csv"


def test_text_ids_and_columns_beside(tmp_path, table, begin):
    session = begin(tmp_path, table, **TEXT, show=("from",))
    client = client_of(session)
    state = client.get("/api/state").json()
    assert state["kind"] == "text"
    assert state["labelled"] == 2  # of the table itself
    card = client.get("/api/row/5").json()
    assert card["id"] == f"m-005{IMAGE}"
    assert card["content"]["kind"] == "text"
    assert card["content"]["text"].endswith(IMAGE)  # as it is: the page shows text as text
    assert card["shown"] == [{"name": "from", "value": "person 5"}]
    assert "topic" not in [each["name"] for each in card["values"]]
    post(client, "/api/answer", row=5, label="money")
    post(client, "/api/answer", row=4, label="sport")
    with open(tmp_path / "answers.csv", newline="") as file:
        lines = list(csv.reader(file))
    assert lines == [["key", "label"], [f"m-005{IMAGE}", "money"], ["m-004", "sport"]]
    fitted(session)
    card = client.get("/api/row/8").json()
    assert card["guess"]["label"] == "sport"
    assert {each["id"] for each in card["nearest"]} <= {"m-001", "m-003", f"m-005{IMAGE}", "m-004"}
    # What fit reads is what was answered, beside what the table says.
    labels = session.wanted.job.label_input.gather(120).labels
    named = dict(zip(labels.rows.tolist(), labels.classes[labels.codes].tolist(), strict=True))
    assert named == {1: "money", 3: "money", 4: "sport", 5: "money"} == session.answers.labelled()


def test_answers_by_id_are_found_again_and_those_of_other_rows_refused(tmp_path, table, begin):
    path = tmp_path / "answers.csv"
    path.write_text("key,label\nm-004,sport\nm-007,money\n")
    session = begin(tmp_path, table, **TEXT)
    assert session.answers.own == {4: "sport", 7: "money"}
    session.close()
    path.with_name("answers.csv.journal").unlink()
    path.write_text("key,label\nx-1,sport\n")
    with pytest.raises(LabelError, match="'x-1', which is no entry of column 'key'"):
        Session(wanted(tmp_path, table, **TEXT))
    path.write_text("row,label\n120,sport\n")
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


@pytest.fixture
def small_pool(tmp_path, begin, monkeypatch):
    monkeypatch.setattr("biglp._labelling.learner.POOL_ROWS", 200)
    X, truth = made_rows(1000)
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "answers.csv").write_text("row,label\n3,c0\n997,c1\n")
    session = begin(tmp_path, tmp_path / "rows.npy")
    inside = session.loop.learner.pool.rows
    assert len(inside) == 200
    assert {3, 997} <= set(inside.tolist())
    return session, truth


def test_rows_outside_the_pool_can_be_labelled_and_count(small_pool):
    session, truth = small_pool
    client = client_of(session)
    inside = set(session.loop.learner.pool.rows.tolist())
    outside = [row for row in range(1000) if row not in inside]
    for code in range(3):
        rows = [row for row in outside[:30] if truth[row] == code]
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
    np.testing.assert_allclose(fit.probabilities_of(stored)[0], fit.probabilities[7], atol=1e-4)


def test_the_map_has_all_rows(small_pool):
    session, truth = small_pool
    client = client_of(session)
    wait_for(lambda: client.get("/api/state").json()["map_points"] == 1000)
    reply = client.get("/api/map/points")
    positions = np.frombuffer(reply.content, "<f4").reshape(-1, 2)
    assert int(reply.headers["x-points"]) == len(positions) == 1000
    assert np.abs(positions).max() <= 1.0001
    assert np.ptp(positions, axis=0).max() > 1.9
    points = np.frombuffer(client.get("/api/map/rows").content, "<i8")
    assert sorted(points) == list(range(1000))
    for row in [*range(30), 3, 997]:
        post(client, "/api/answer", row=row, label=f"class {truth[row]}")
    fitted(session)
    colours = np.frombuffer(client.get("/api/map/colours").content, np.uint8).reshape(-1, 2)
    names = np.array(session.answers.classes)
    assert np.mean(names[colours[:, 0]] == [f"class {truth[row]}" for row in points]) > 0.9
    marked = client.get("/api/map/labelled").json()
    pairs = zip(marked["points"], marked["classes"], strict=True)
    assert {int(points[n]): names[code] for n, code in pairs} == session.answers.labelled()


def test_a_model_that_cannot_be_fitted_is_told(tmp_path):
    np.save(tmp_path / "rows.npy", made_rows(100)[0])
    session = Session(wanted(tmp_path, tmp_path / "rows.npy", parameters={"memory": "70MB"}))
    try:
        session.start()
        wait_for(lambda: session.loop.problem is not None)
        client = client_of(session)
        assert "--memory" in client.get("/api/state").json()["model"]["problem"]
        row = client.get("/api/next").json()["cards"][0]["row"]
        assert post(client, "/api/answer", row=row, label="a")["saved"]
    finally:
        session.close()
