"""Names of classes are typed as they are: no letter of them is a command."""

from __future__ import annotations

from browser_tools import wait_for

WORDS = """
    sport, fish, cat, undo, skip, finish, category, rename, map, lasso, colour, doubts, next,
    help, sports, catfish, dog, cow, u, s, n, r, m, l, c, d, f, z, U, Skip, FISH, mp3, h2o,
    covid19, b2b, x86, utf-8, vitamin-b12, accept, answer, back, enter, escape, delete, quit,
    yes, no, other, unsure, spam, ham, lion, tiger, crème brûlée, don't, a+b, c#, .net, #tag,
    @home, (sic), /dev/null, null island, sea lion, new york, fish & chips
"""
NAMES = [name.strip() for name in WORDS.split(",")]


def test_names_are_what_was_typed(fresh, visit):
    page = visit(fresh)
    page.has_focus("#other-name")
    given = {}
    assert len(NAMES) >= 60
    for name in NAMES:
        row = page.row
        page.page.keyboard.type(name)
        page.has_focus("#other-name")
        page.press("Enter")
        page.expect("#saved").to_have_text(f"✓ Saved row {row:,} as {name}")
        page.expect("#work-title").not_to_have_text(f"Row {row:,}")
        given[str(row)] = name
    assert fresh.answers() == given
    assert page.page.locator("dialog[open]").count() == 0
    buttons = page.page.locator("#classes button")
    page.expect("#counts").to_contain_text(NAMES[-1])
    found = buttons.evaluate_all("all => all.map((each) => each.title)")
    assert sorted(found) == sorted(NAMES)

    def saved(row, name):
        page.expect("#saved").to_have_text(f"✓ Saved row {row:,} as {name}")
        page.expect("#work-title").not_to_have_text(f"Row {row:,}")
        given[str(row)] = name

    # A digit is a class where no name is being typed; one that begins a name comes after Alt-N.
    row = page.row
    page.press(page.key("sport"))
    saved(row, "sport")
    row = page.row
    page.press("Alt+n")
    page.page.keyboard.type("3d")
    page.press("Enter")
    saved(row, "3d")
    # Tab completes a known name that alone begins so.
    row = page.row
    page.page.keyboard.type("tig")
    page.press("Tab", "Enter")
    saved(row, "tiger")
    assert fresh.answers() == given

    # Ctrl-Z takes back letters while there are some, and then the last answer.
    page.page.keyboard.type("lio")
    page.press("Control+z")
    page.has_focus("#other-name")
    assert fresh.answers() == given
    page.page.locator("#other-name").fill("")
    page.press("Control+z")
    page.expect("#work-title").to_have_text(f"Row {row:,}")
    del given[str(row)]
    wait_for(lambda: fresh.answers() == given)

    # Skipping leaves a begun name behind.
    page.page.keyboard.type("lio")
    page.press("Alt+s")
    page.expect("#saved").to_have_text(f"✓ Skipped row {row:,}")
    page.expect("#other-name").to_have_value("")
    assert fresh.answers() == given
