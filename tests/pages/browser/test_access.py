"""What axe-core finds, in light and dark, on a desktop and on a phone; and a page without WebGL."""

from __future__ import annotations

import pytest

from browser_tools import DESKTOP, PHONE


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(known, visit, scheme):
    page = visit(known, color_scheme=scheme, reduced_motion="reduce")
    page.expect("#doubt-rows li:first-child").to_be_visible()
    for size in (DESKTOP, PHONE):
        page.page.set_viewport_size(size)
        assert not page.violations()
        # Nothing is wider than the screen.
        assert page.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    # Half of the dialogs in light, half in dark: they share their colours.
    light = {"?": "#help", "Alt+r": "#class-dialog"}
    dialogs = light if scheme == "light" else {"Alt+f": "#finish-dialog"}
    for key, place in dialogs.items():
        page.press(key)
        page.expect(place).to_be_visible()
        assert not page.violations(place)
        page.press("Escape")
        page.expect(place).to_be_hidden()


def test_the_map_is_drawn_with_and_without_webgl(known, visit):
    without = (
        "const real = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
        "  return kind === 'webgl' ? null : real.call(this, kind, ...more); };"
    )
    page = visit(known)
    webgl = page.page.evaluate("!!document.createElement('canvas').getContext('webgl')")
    page.expect("#map").to_have_attribute("data-painter", "webgl" if webgl else "canvas")
    page.expect("#map-text").to_contain_text("240 rows")
    page.page.add_init_script(without)
    page.page.reload()
    page.expect("#map").to_have_attribute("data-painter", "canvas")
    page.expect("#map-text").to_contain_text("240 rows")
    drawn = page.page.evaluate(
        """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
          const canvas = document.querySelector('#map canvas');
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          done(data.filter((value, i) => i % 4 === 3 && value > 0).length);
        })))"""
    )
    assert drawn > 240
