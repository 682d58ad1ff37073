"""What the page asks and gets: a session from the first card to the fit of all rows."""

import asyncio
import csv
import io
import json

import numpy as np
import pytest

from biglp._labelling.app import Page
from biglp._labels.reading import LabelInput
from label_tools import client_of, fitted, made_rows, opened, post, wait_for, wanted

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def rows():
    return made_rows(600)


@pytest.fixture
def session(tmp_path, rows):
    np.save(tmp_path / "rows.npy", rows[0])
    found = opened(wanted(tmp_path, tmp_path / "rows.npy"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory, rows):
    """A session that no test may change."""
    folder = tmp_path_factory.mktemp("untouched")
    np.save(folder / "rows.npy", rows[0])
    found = opened(wanted(folder, folder / "rows.npy"))
    yield found
    found.close()


@pytest.fixture
def client(session):
    return client_of(session)


def label_next(client, truth, n):
    """Answer n cards as the truth has it."""
    cards = client.get("/api/next").json()["cards"]
    for _ in range(n):
        row = cards[0]["row"]
        cards = post(client, "/api/answer", row=row, label=f"class {truth[row]}")["next"]
    return cards


def test_from_zero_to_a_model(session, client, rows):
    X, truth = rows
    state = client.get("/api/state").json()
    assert state["rows"] == state["pool_rows"] == 600
    assert state["kind"] == "table"
    assert state["classes"] == []
    assert state["model"]["state"] == "none"
    card = client.get("/api/next?n=1").json()["cards"][0]
    assert card["guess"] is None
    assert card["label"] is None
    assert [value["name"] for value in card["values"]] == [f"feature {i}" for i in range(5)]
    cards = label_next(client, truth, 24)
    fit = fitted(session)
    assert fit.n_labels == 24
    answered = np.array(fit.classes)[fit.probabilities.argmax(axis=1)]
    assert np.mean(answered == [f"class {code}" for code in truth]) > 0.95
    card = client.get(f"/api/row/{cards[0]['row']}").json()
    assert card["guess"] == card["probabilities"][0]
    assert sum(each["probability"] for each in card["probabilities"]) == pytest.approx(1, abs=1e-3)
    assert len(card["nearest"]) == 4
    near = session.source.take(np.sort([each["row"] for each in card["nearest"]]))
    others = session.source.take(np.sort(list(session.answers.own)))
    own = X[card["row"]]
    assert np.linalg.norm(near - own, axis=1).mean() < np.linalg.norm(others - own, axis=1).mean()
    means = card["values"][0]["means"]
    members = X[truth == 0, 0]
    assert float(means["class 0"]) == pytest.approx(members.mean(), abs=0.5)
    state = client.get("/api/state").json()
    assert state["labelled"] == sum(each["labelled"] for each in state["classes"]) == 24
    assert sum(each["found"] for each in state["classes"]) == pytest.approx(600, abs=3)
    assert [each["key"] for each in state["classes"]] == ["1", "2", "3"]
    assert 0 <= state["estimate"]["low"] <= state["estimate"]["accuracy"] <= 1
    assert state["history"][-1]["labels"] == 24
    assert "more labels" in state["next_gain"]


def test_cards_are_never_of_labelled_or_skipped_rows(session, client, rows):
    truth, seen = rows[1], set()
    cards = client.get("/api/next?n=20").json()["cards"]
    for number in range(30):
        assert len({card["row"] for card in cards}) == len(cards)
        assert not seen & {card["row"] for card in cards}
        row = cards[0]["row"]
        seen.add(row)
        if number % 3:
            cards = post(client, "/api/answer", row=row, label=str(truth[row]))["next"]
        else:
            cards = post(client, "/api/skip", row=row)["next"]
    assert client.get("/api/state").json()["skipped"] == 10


def test_two_pages_agree(session, client, rows):
    other = client_of(session)
    label_next(client, rows[1], 3)
    label_next(other, rows[1], 3)
    fitted(session)  # until then the state changes from one question to the next
    assert client.get("/api/state").json() == other.get("/api/state").json()
    assert client.get("/api/state").json()["labelled"] == 6
    assert client.get("/api/next").json() == other.get("/api/next").json()
    undone = post(other, "/api/undo")["undone"]
    assert client.get(f"/api/row/{undone['rows'][0]}").json()["label"] is None


def test_the_same_answer_twice_is_saved_once(session, client):
    sent = {"row": 5, "label": "a", "answer": "one"}
    assert client.post("/api/answer", json=sent).json()["saved"]
    assert client.post("/api/answer", json={**sent, "row": 6}).json()["saved"]
    assert session.answers.own == {5: "a"}


def test_many_rows_are_one_step(session, client):
    post(client, "/api/answers", rows=[3, 1, 2, 3], label="a")
    assert session.answers.own == {3: "a", 1: "a", 2: "a"}
    assert post(client, "/api/undo")["undone"] == {"rows": [3, 1, 2], "label": "a"}
    assert session.answers.own == {}
    assert not client.get("/api/state").json()["can_undo"]


def test_a_wrong_label_is_found_and_corrected(session, client, rows):
    truth = rows[1]
    label_next(client, truth, 40)
    row = next(iter(session.answers.own))
    wrong = f"class {(truth[row] + 1) % 3}"
    post(client, "/api/answer", row=row, label=wrong)
    fitted(session)
    doubts = client.get("/api/doubts").json()["rows"]
    assert doubts[0]["row"] == row
    assert doubts[0]["label"] == wrong
    assert doubts[0]["suggested"] == f"class {truth[row]}"
    post(client, "/api/answer", row=row, label=doubts[0]["suggested"])
    assert row not in [each["row"] for each in client.get("/api/doubts").json()["rows"]]


def test_classes_are_added_and_renamed(session, client, rows):
    label_next(client, rows[1], 12)
    fitted(session)
    reply = client.post("/api/classes", json={"add": EVIL})
    assert reply.status_code == 200
    assert client.post("/api/classes", json={"rename": "class 0", "to": "zero"}).status_code == 200
    names = [each["name"] for each in client.get("/api/state").json()["classes"]]
    assert sorted(names) == sorted([EVIL, "class 1", "class 2", "zero"])
    card = client.get("/api/next").json()["cards"][0]
    assert {each["label"] for each in card["probabilities"]} == {"zero", "class 1", "class 2"}
    reply = client.post("/api/classes", json={"rename": "zero", "to": "class 1"})
    assert reply.status_code == 400
    assert "already" in reply.json()["error"]


def test_the_map(session, client, rows):
    wait_for(lambda: session.map.points is not None)
    reply = client.get("/api/map/points")
    places = np.frombuffer(reply.content, "<f4").reshape(-1, 2)
    assert int(reply.headers["x-points"]) == len(places) == 600
    assert np.abs(places).max() <= 1.0001
    assert np.ptp(places, axis=0).max() > 1.9
    points = np.frombuffer(client.get("/api/map/rows").content, "<i8")
    assert sorted(points) == list(range(600))
    assert set(client.get("/api/map/colours").content) == {255}
    label_next(client, rows[1], 24)
    fitted(session)
    colours = np.frombuffer(client.get("/api/map/colours").content, np.uint8).reshape(-1, 2)
    names = [each["name"] for each in client.get("/api/state").json()["classes"]]
    named = np.array(names)[colours[:, 0]]
    assert np.mean(named == [f"class {rows[1][row]}" for row in points]) > 0.95
    marked = client.get("/api/map/labelled").json()
    found = {int(points[number]): names[key] for number, key in zip(*marked.values(), strict=True)}
    assert found == session.answers.labelled()


def test_export(session, client):
    post(client, "/api/answer", row=4, label='a "b", c')
    post(client, "/api/answer", row=2, label=EVIL)
    reply = client.get("/api/export?format=csv")
    assert "attachment" in reply.headers["content-disposition"]
    lines = list(csv.reader(io.StringIO(reply.text)))
    assert lines == [["row", "label"], ["4", 'a "b", c'], ["2", EVIL]]
    lines = client.get("/api/export?format=jsonl").text.splitlines()
    assert [json.loads(line) for line in lines][1] == {"row": 2, "label": EVIL}
    assert client.get("/api/export?format=exe").status_code == 400


def test_finish_fits_all_rows(session, client, rows, tmp_path):
    assert client.post("/api/finish", json={}).status_code == 400  # nothing to learn from
    label_next(client, rows[1], 24)
    assert client.post("/api/finish", json={}).status_code == 200
    wait_for(lambda: session.finishing.state()["state"] != "running")
    state = client.get("/api/state").json()["finish"]
    assert state["state"] == "done", state
    assert {"labels.npy", "model.biglp", "summary.json"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    found = np.load(tmp_path / "out" / "labels.npy")
    assert len(found) == 600
    labels = LabelInput(None, labels=(str(tmp_path / "answers.csv"),)).read(600)
    answered = {
        row: labels.classes[code] for row, code in zip(labels.rows, labels.codes, strict=True)
    }
    assert answered == session.answers.own


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/api/answer", {"row": -1, "label": "a"}),
        ("/api/answer", {"row": 600, "label": "a"}),
        ("/api/answer", {"row": "1", "label": "a"}),
        ("/api/answer", {"row": True, "label": "a"}),
        ("/api/answer", {"row": 1, "label": ""}),
        ("/api/answer", {"row": 1, "label": "NA"}),
        ("/api/answer", {"row": 1, "label": 5}),
        ("/api/answer", {"row": 1, "label": "a", "answer": ""}),
        ("/api/answer", {"row": 1, "label": "a", "answer": "x" * 500}),
        ("/api/answers", {"rows": [], "label": "a"}),
        ("/api/answers", {"rows": 3, "label": "a"}),
        ("/api/answers", {"rows": [1, 999], "label": "a"}),
        ("/api/skip", {"row": 10**30}),
        ("/api/classes", {"rename": "nothing", "to": "a"}),
        ("/api/classes", {"add": "a\nb"}),
    ],
)
def test_what_is_refused_changes_nothing(untouched, path, given):
    reply = client_of(untouched).post(path, json={"answer": "one", **given})
    assert reply.status_code == 400
    assert reply.json()["error"]
    assert untouched.answers.own == {}
    assert untouched.wanted.path.read_text() == "row,label\n"


def test_requests_that_are_no_json(untouched):
    client = client_of(untouched)
    assert client.post("/api/answer", content=b"{").status_code == 400
    assert client.post("/api/answer", content=b"[1]").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2f..%2fserver.py",
        "/static//etc/passwd",
        "/../answers.csv",
        "/api/row/-1",
        "/api/row/x",
        "/api/row/600",
        "/api/image/1",
        "/api/image/..%2f..%2fanswers.csv",
    ],
)
def test_paths_that_lead_elsewhere(untouched, path):
    reply = client_of(untouched).get(path)
    assert reply.status_code in (400, 404)
    assert "import" not in reply.text


def test_events_tell_of_changes_and_end_with_the_server(session):
    async def listen():
        page = Page(session)
        stream = page._changes()
        first = json.loads((await anext(stream)).removeprefix("data: "))
        assert first["server"] == session.id
        await asyncio.to_thread(session.label, [1], "a", "one")
        second = json.loads((await anext(stream)).removeprefix("data: "))
        assert second["version"] > first["version"]
        page.closing.set()
        session.changed()
        return [line async for line in stream]

    assert len(asyncio.run(listen())) <= 1


def test_a_restart_goes_on(tmp_path, session, client, rows):
    cards = label_next(client, rows[1], 12)
    post(client, "/api/skip", row=cards[0]["row"])
    client.post("/api/classes", json={"add": "later"})
    before = client.get("/api/state").json()
    session.close()
    again = opened(session.wanted)
    try:
        fitted(again)
        state = client_of(again).get("/api/state").json()
        assert state["server"] != before["server"]
        for key in ("labelled", "skipped", "can_undo", "rows", "labels_file"):
            assert state[key] == before[key]
        assert [each["name"] for each in state["classes"]] == [
            each["name"] for each in before["classes"]
        ]
        fresh = client_of(again).get("/api/next").json()["cards"]
        assert not {card["row"] for card in fresh} & {*again.answers.own, cards[0]["row"]}
    finally:
        again.close()
