"""A table with text whose every string looks like HTML: labelled, and shown as it is."""

from __future__ import annotations

from browser_tools import IMAGE, SCRIPT

CLASSES = ("<i>sport</i>", '"money" & <script>window.hacked = 2</script>')


def test_a_session_on_text_that_looks_like_html(table, topics, visit):
    page = visit(table)
    page.has_focus("#other-name")
    # The row's own text, ID and column names are text.
    assert page.text("#content .text").startswith(SCRIPT)
    assert page.text("#work-title").endswith(IMAGE)
    assert "<b>size</b>" in page.text("#content .values")

    given = {}
    for _ in range(8):
        name = CLASSES[topics[page.row]]
        given[page.answer(name)] = name
    page.page.reload()
    page.expect("#think .guess").to_be_visible()
    assert page.text("#think .guess") in CLASSES
    for place in ("#counts", "#legend", "#classes", "#nearest-rows"):
        page.expect(place).to_contain_text(CLASSES[0])
    found = page.page.evaluate(
        "() => [window.hacked, document.querySelectorAll('main script, main i, main b').length,"
        " document.querySelectorAll('[onerror]').length]"
    )
    assert found == [None, 0, 0]
    assert not page.violations()
    expected = {f"{row}{IMAGE}": name for row, name in given.items()}
    assert table.answers() == expected

    # A lasso with the mouse around the whole map; the page shows how many, and Escape lets go.
    page.press("Alt+l")
    box = page.page.locator("#map").bounding_box()
    corners = [(0.02, 0.02), (0.85, 0.02), (0.85, 0.5), (0.85, 0.98), (0.02, 0.98), (0.02, 0.5)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.page.mouse.move(*places[0])
    page.page.mouse.down()
    for place in places[1:]:
        page.page.mouse.move(*place)
    page.page.mouse.up()
    page.expect("#work-title").to_contain_text("rows selected")
    assert int(page.text("#work-title").split(" ")[0]) > len(topics) / 2
    page.press("Escape")
    page.expect("#work-title").to_contain_text("Row ")
    assert table.answers() == expected


def test_two_windows_agree(known, shapes, visit):
    first, second = visit(known), visit(known)
    before = int(first.text("#counts .small").split(" ")[0])
    row = first.answer(str(shapes[1][first.row]))
    for page in (first, second):
        page.expect("#counts .small").to_contain_text(f"{before + 1} labelled")
        page.expect("#work-title").not_to_have_text(f"Row {row}")
