"""The server is killed while somebody labels: nothing is lost, nothing is doubled."""

from __future__ import annotations

import pytest

from browser_tools import wait_for


@pytest.fixture
def revived(known):
    """The server, running again at the end whatever happens."""
    yield known
    if known.process.wait(0) is not None:
        known.start()


def test_answers_wait_for_a_server_that_is_gone(revived, visit):
    page = visit(revived)
    name = "bar"
    key = page.key(name)
    before = revived.answers()
    revived.kill()
    page.expect("#banner").to_contain_text("The server is gone")

    # The next rows are here already: two more answers, kept but not called saved.
    rows = []
    for n in (1, 2):
        row = page.row
        page.press(key)
        page.expect("#work-title").not_to_have_text(f"Row {row}")
        page.expect("#banner").to_contain_text(f"{n} answer")
        assert not page.text("#saved").startswith("✓")
        rows.append(str(row))
    # The last one is taken back before it was ever sent.
    page.press("Control+z")
    page.expect("#banner").to_contain_text("1 answer ")
    assert revived.answers() == before

    # It is sent when the server is back, once.
    revived.start()
    page.expect("#banner").to_be_hidden()
    wait_for(lambda: revived.answers() == {**before, rows[0]: name})
    page.expect("#saved").to_contain_text("✓ Saved")
    lines = (revived.folder / "answers.csv").read_text().splitlines()
    assert sum(line.startswith(f"{rows[0]},") for line in lines) == 1
    # And labelling goes on.
    page.page.reload()
    page.expect("#think").not_to_be_empty()
    row = page.answer(name)
    assert revived.answers() == {**before, rows[0]: name, str(row): name}


def test_an_unsent_answer_outlives_a_reload(known, visit):
    page = visit(known)
    page.page.route("**/api/answer", lambda route: route.abort())
    row = page.row
    page.press(page.key("pole"))
    page.expect("#banner").to_contain_text("1 answer not saved yet")
    assert str(row) not in known.answers()
    page.page.unroute("**/api/answer")
    page.page.reload()
    wait_for(lambda: known.answers().get(str(row)) == "pole")
    page.expect("#banner").to_be_hidden()
