"""A whole session on images, from no label to the files, by keyboard alone."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq

from browser_tools import wait_for


def test_a_session_by_keyboard(images, shapes, visit):
    _, names = shapes
    page = visit(images)
    given = {}

    def answer(name=None):
        name = name or str(names[page.row])
        given[page.answer(name)] = name

    # Nothing is known yet: the cursor waits where the first class is typed.
    page.has_focus("#other-name")
    page.expect("#intro").to_be_visible()
    answer()
    page.has_focus("#work-title")
    page.expect("#intro").to_be_hidden()
    while len(set(given.values())) < 3:
        answer()
    # Images are enlarged by a whole factor.
    assert page.page.locator("#content img").get_attribute("width") == "320"

    # Undo shows the row again, and the file forgets it.
    answer()
    last = list(given)[-1]
    page.press("Control+z")
    page.expect("#work-title").to_have_text(f"Row {last:,}")
    given.pop(last)
    assert images.answers() == {str(row): name for row, name in given.items()}

    # Skip goes on without a label.
    row = page.row
    page.press("Alt+s")
    page.expect("#saved").to_have_text(f"✓ Skipped row {row:,}")
    page.expect("#work-title").not_to_have_text(f"Row {row:,}")

    # A class is renamed; its rows follow.
    page.press("Alt+r")
    page.page.locator('#class-dialog input[value="ring"]').focus()
    page.press("Control+a")
    page.page.keyboard.type("frame")
    page.press("Enter")
    page.expect('#class-dialog input[value="frame"]').to_be_visible()
    page.press("Escape")
    page.expect("#class-dialog").to_be_hidden()
    names = np.where(names == "ring", "frame", names)
    given = {row: "frame" if name == "ring" else name for row, name in given.items()}
    assert images.answers() == {str(row): name for row, name in given.items()}

    # One answer is wrong.
    wrong = page.row
    answer("pole" if names[wrong] != "pole" else "bar")
    for _ in range(8):
        answer()

    # The model has guesses now: Enter takes one.
    page.page.reload()
    page.expect("#think .guess").to_be_visible()
    row, guess = page.row, page.text("#think .guess")
    page.press("Enter")
    page.expect("#saved").to_have_text(f"✓ Saved row {row:,} as {guess}")
    given[row] = guess
    page.expect("#estimate .big").to_be_visible()

    # The wrong answer is found, and changed with the keyboard.
    while page.page.get_by_role("button", name=f"Change row {wrong} to").count() == 0:
        assert len(given) < 60
        answer()
    page.press("Alt+d")
    page.has_focus("#doubts-title")
    button = page.page.get_by_role("button", name=f"Change row {wrong} to {names[wrong]}")
    for _ in range(30):
        page.press("Tab")
        if button.evaluate("node => node === document.activeElement"):
            break
    page.press("Enter")
    page.expect("#saved").to_have_text(f"✓ Saved row {wrong} as {names[wrong]}")
    given[wrong] = str(names[wrong])
    assert images.answers() == {str(row): name for row, name in given.items()}

    # The map by keyboard: the circle around the current row, all of it one class, one step back.
    page.press("Alt+m")
    page.has_focus("#map")
    page.press("]", "ArrowRight", "ArrowLeft", "Enter")
    page.expect("#work-title").to_contain_text("rows selected")
    n = int(page.text("#work-title").split(" ")[0])
    page.press(page.key("bar"))
    page.expect("#saved").to_have_text(f"✓ Saved {n} rows as bar")
    page.expect("#classes button[title=bar] .count").not_to_be_empty()
    assert list(images.answers().values()).count("bar") >= n
    page.press("Control+z")
    wait_for(lambda: images.answers() == {str(row): name for row, name in given.items()})

    # Finish writes the classes of all rows.
    page.press("Alt+f", "Enter")
    page.expect("#finish-dialog").to_contain_text("Done.")
    assert "labels" in page.text("#finish-dialog .files")
    page.press("Escape")
    assert images.answers() == {str(row): name for row, name in given.items()}
    (written,) = (images.folder / "answers-out").glob("labels*")
    found = np.load(written) if written.suffix == ".npy" else pq.read_table(written)["label"]
    assert (np.asarray(found).astype(str) == names).mean() > 0.95
