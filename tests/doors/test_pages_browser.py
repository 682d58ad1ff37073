"""The labelling page in a real browser: sessions by keyboard, hostile text, a server that dies."""

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest

from browser_tools import (
    DESKTOP,
    IMAGE,
    PHONE,
    SCRIPT,
    Labelling,
    Served,
    browser,
    wait_for,
    why_no_browser,
)

pytestmark = pytest.mark.skipif(bool(why_no_browser()), reason=why_no_browser())

TOPICS = ("the goal, the match and the team", "the market, the price and the bank")
CLASSES = ("<i>sport</i>", '"money" & <script>window.hacked = 2</script>')


@pytest.fixture(scope="module")  # its event loop must not run on under tests of other rooms
def chromium():
    with browser() as made:
        yield made


@pytest.fixture
def visit(chromium):
    visited = []

    def come(served, **options):
        context = chromium.new_context(viewport=DESKTOP, **options)
        asked = []
        context.on("request", lambda request: asked.append(request.url))
        page = Labelling(context.new_page())
        visited.append((context, page, served, asked))
        return page.open(served.url)

    yield come
    for context, page, served, asked in visited:
        context.close()
        inside = (served.origin, "data:", "blob:")
        assert asked
        assert not [url for url in asked if not url.startswith(inside)]
        assert not [line for line in page.said if "ERR_" not in line]


@pytest.fixture(scope="module")
def shapes():
    rng = np.random.default_rng(5)
    drawn = np.zeros((3, 8, 8))
    drawn[0, 3:5, :] = 1
    drawn[1, :, 3:5] = 1
    drawn[2, 1:7, 1:7] = 1
    drawn[2, 2:6, 2:6] = 0
    kinds = rng.integers(0, 3, size=240)
    rows = drawn[kinds].reshape(-1, 64) * 170 + rng.uniform(0, 80, size=(240, 64))
    return rows.astype(np.uint8), np.array(["bar", "pole", "ring"])[kinds]


def served(folder, rows):
    np.save(folder / "shapes.npy", rows)
    made = Served(folder, "shapes.npy")
    yield made
    made.stop()


@pytest.fixture
def images(shapes, tmp_path):
    yield from served(tmp_path, shapes[0])


@pytest.fixture(scope="module")
def labelled(shapes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("known")
    rows, names = shapes
    lines = [f"{row},{name}" for row, name in enumerate(names[:15])]
    lines[0] = f"0,{next(name for name in names if name != names[0])}"
    (folder / "answers.csv").write_text("\n".join(["row,label", *lines]) + "\n")
    yield from served(folder, rows)


@pytest.fixture
def known(labelled):
    yield labelled
    if labelled.process.wait(0) is not None:
        labelled.start()


def test_a_session_by_keyboard(images, shapes, visit):
    """From no label to the files, by keyboard alone."""
    _, names = shapes
    page = visit(images)
    given = {}

    def answer(name=None):
        name = name or str(names[page.row])
        given[page.answer(name)] = name

    def on_disk():
        return images.answers() == {str(row): name for row, name in given.items()}

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

    # Undo shows the row again, and the file forgets it; skip goes on without a label.
    answer()
    last = list(given)[-1]
    page.press("Control+z")
    page.expect("#work-title").to_have_text(f"Row {last:,}")
    given.pop(last)
    assert on_disk()
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
    assert on_disk()

    # One answer is wrong. The model has guesses soon: Enter takes one.
    wrong = page.row
    answer("pole" if names[wrong] != "pole" else "bar")
    for _ in range(8):
        answer()
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
    assert on_disk()

    # The map by keyboard: the circle around the current row, all of it one class, one step back.
    page.press("Alt+m")
    page.has_focus("#map")
    page.press("]", "ArrowRight", "ArrowLeft", "Enter")
    page.expect("#work-title").to_contain_text("rows selected")
    n = int(page.text("#work-title").split(" ")[0])
    page.press(page.key("bar"))
    page.expect("#saved").to_have_text(f"✓ Saved {n} rows as bar")
    assert list(images.answers().values()).count("bar") >= n
    page.press("Control+z")
    wait_for(on_disk)

    # Finish writes the classes of all rows.
    page.press("Alt+f", "Enter")
    page.expect("#finish-dialog").to_contain_text("Done.")
    assert "labels" in page.text("#finish-dialog .files")
    page.press("Escape")
    assert on_disk()
    (written,) = (images.folder / "answers-out").glob("labels*")
    found = np.load(written) if written.suffix == ".npy" else pq.read_table(written)["label"]
    assert (np.asarray(found).astype(str) == names).mean() > 0.95


WORDS = """
    sport, fish, cat, undo, skip, category, next, sports, catfish, cow, u, s, n, l, c, f, z, U,
    Skip, FISH, mp3, utf-8, vitamin-b12, enter, escape, lion, tiger, crème brûlée, don't, a+b, c#,
    .net, #tag, @home, (sic), /dev/null, null island, sea lion, fish & chips
"""


def test_names_are_what_was_typed(images, visit):
    """Names of classes are typed as they are: no letter of them is a command."""
    page = visit(images)
    given = {}

    def saved(name, *keys):
        row = page.row
        page.press(*keys)
        page.expect("#saved").to_have_text(f"✓ Saved row {row:,} as {name}")
        page.expect("#work-title").not_to_have_text(f"Row {row:,}")
        given[str(row)] = name
        return row

    names = [name.strip() for name in WORDS.split(",")]
    page.has_focus("#other-name")
    for name in names:
        page.page.keyboard.type(name)
        page.has_focus("#other-name")
        saved(name, "Enter")
    assert images.answers() == given
    assert page.page.locator("dialog[open]").count() == 0
    page.expect("#counts").to_contain_text(names[-1])
    buttons = page.page.locator("#classes button")
    found = buttons.evaluate_all("all => all.map((each) => each.title)")
    assert sorted(found) == sorted(names)

    # A digit is a class where no name is being typed; one that begins a name comes after Alt-N.
    saved("sport", page.key("sport"))
    page.press("Alt+n")
    page.page.keyboard.type("3d")
    saved("3d", "Enter")
    # Tab completes a known name that alone begins so.
    page.page.keyboard.type("tig")
    row = saved("tiger", "Tab", "Enter")
    assert images.answers() == given

    # Ctrl-Z takes back letters while there are some, and then the last answer.
    page.page.keyboard.type("lio")
    page.press("Control+z")
    page.has_focus("#other-name")
    assert images.answers() == given
    page.page.locator("#other-name").fill("")
    page.press("Control+z")
    page.expect("#work-title").to_have_text(f"Row {row:,}")
    del given[str(row)]
    wait_for(lambda: images.answers() == given)

    # Skipping leaves a begun name behind.
    page.page.keyboard.type("lio")
    page.press("Alt+s")
    page.expect("#saved").to_have_text(f"✓ Skipped row {row:,}")
    page.expect("#other-name").to_have_value("")
    assert images.answers() == given


def test_a_session_on_text_that_looks_like_html(tmp_path, visit, request):
    rng, topics = np.random.default_rng(7), np.random.default_rng(6).integers(0, 2, size=160)
    with (tmp_path / "mails.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["key", "body", "<b>size</b>"])
        for row, topic in enumerate(topics):
            words = rng.permutation(TOPICS[topic].split())
            out.writerow([f"{row}{IMAGE}", f"{SCRIPT} {' '.join(words)}", rng.normal(topic, 1)])
    table = Served(tmp_path, "mails.csv", "--id-column", "key", "--text", "body")
    request.addfinalizer(table.stop)
    page = visit(table)
    page.has_focus("#other-name")
    # The row's own text, ID and column names are text.
    assert page.text("#content .text").startswith(SCRIPT)
    assert page.text("#work-title").endswith(IMAGE)
    assert "<b>size</b>" in page.text("#content .values")

    given = {}
    for _ in range(8):
        name = CLASSES[topics[page.row]]
        given[f"{page.answer(name)}{IMAGE}"] = name
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
    assert table.answers() == given

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
    assert table.answers() == given


def test_answers_wait_for_a_server_that_is_gone(known, visit):
    """Nothing is lost, nothing is doubled."""
    page = visit(known)
    name = "bar"
    key = page.key(name)
    before = known.answers()
    known.kill()
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
    assert known.answers() == before

    # It is sent when the server is back, once, and labelling goes on.
    known.start()
    page.expect("#banner").to_be_hidden()
    wait_for(lambda: known.answers() == {**before, rows[0]: name})
    page.expect("#saved").to_contain_text("✓ Saved")
    lines = (known.folder / "answers.csv").read_text().splitlines()
    assert sum(line.startswith(f"{rows[0]},") for line in lines) == 1
    page.page.reload()
    page.expect("#think").not_to_be_empty()
    row = page.answer(name)
    assert known.answers() == {**before, rows[0]: name, str(row): name}

    # An answer that was not sent outlives a reload.
    page.page.route("**/api/answer", lambda route: route.abort())
    row = str(page.row)
    page.press(page.key("pole"))
    page.expect("#banner").to_contain_text("1 answer not saved yet")
    assert row not in known.answers()
    page.page.unroute("**/api/answer")
    page.page.reload()
    wait_for(lambda: known.answers().get(row) == "pole")
    page.expect("#banner").to_be_hidden()


@pytest.mark.parametrize(
    ("scheme", "dialogs"),  # half of the dialogs in light, half in dark: they share their colours
    [("light", {"?": "#help", "Alt+r": "#class-dialog"}), ("dark", {"Alt+f": "#finish-dialog"})],
)
def test_axe_finds_nothing_serious(known, visit, scheme, dialogs):
    page = visit(known, color_scheme=scheme, reduced_motion="reduce")
    page.expect("#doubt-rows li:first-child").to_be_visible()
    for size in (DESKTOP, PHONE):
        page.page.set_viewport_size(size)
        assert not page.violations()
        # Nothing is wider than the screen.
        assert page.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    for key, place in dialogs.items():
        page.press(key)
        page.expect(place).to_be_visible()
        assert not page.violations(place)
        page.press("Escape")
        page.expect(place).to_be_hidden()
