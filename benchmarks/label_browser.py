"""A labelling session in a real browser: 60 labels of MNIST by keyboard, and what they bring.

Needs chromium, BIGLP_DATA and the extras label and test. Says how long the next row took after each
key (in the page: from the key to the frame that shows the next row with its image), and how many
of all rows got the right class. ``--screenshots FOLDER`` draws the pictures of the docs.

    python benchmarks/label_browser.py --rows 20000 --labels 60
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import expect, sync_playwright

CLOCK = """
window.tookMs = [];
addEventListener("keydown", (event) => { window.keyAt = event.timeStamp; }, true);
addEventListener("DOMContentLoaded", () => {
  const shown = document.getElementById("work-title");
  new MutationObserver(async () => {
    const from = window.keyAt;
    if (from === undefined) return;
    window.keyAt = undefined;
    const picture = document.querySelector("#content img");
    if (picture) await picture.decode().catch(() => {});
    requestAnimationFrame(() => window.tookMs.push(performance.now() - from));
  }).observe(shown, { childList: true, characterData: true, subtree: true });
});
"""
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
PATIENCE = 120_000


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """``biglp label`` on the rows of a folder; yields the address."""
    command = [sys.executable, "-m", "biglp", "label", "mnist.npy", "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise RuntimeError("biglp label has ended")
        try:
            yield found.group()
        finally:
            process.terminate()


def label(page: Any, names: np.ndarray, n: int, pause: float) -> None:
    """Answer rows as they come, by the key of the class or by typing its name."""
    for _ in range(n):
        title = page.locator("#work-title").inner_text()
        name = str(names[int(title.removeprefix("Row ").replace(",", ""))])
        keys = page.locator("#classes kbd").all_inner_texts()
        if name in keys:
            page.keyboard.press(name)
        else:
            if keys and page.evaluate("document.activeElement.id") != "other-name":
                page.keyboard.press("n")
            page.keyboard.type(name)
            page.keyboard.press("Enter")
        expect(page.locator("#saved")).to_have_text(f"✓ Saved {title.lower()} as {name}")
        time.sleep(pause)


def finish(page: Any, folder: Path) -> np.ndarray:
    """Label all rows; returns their classes."""
    page.keyboard.press("f")
    page.keyboard.press("Enter")
    expect(page.locator("#finish-dialog")).to_contain_text("Done.", timeout=600_000)
    written = folder / page.locator("#finish-dialog strong").inner_text()
    page.keyboard.press("Escape")
    return np.load(written / "labels.npy").astype(str)


def screenshots(page: Any, folder: Path) -> None:
    """Draw the page on both widths, in light and dark, and the map's circle."""
    folder.mkdir(parents=True, exist_ok=True)
    expect(page.locator("#map-text")).to_contain_text("near ones alike")
    for scheme, size in (("light", "desktop"), ("dark", "desktop"), ("light", "phone")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(SIZES[size])
        page.wait_for_timeout(500)
        page.screenshot(path=folder / f"label-{size}-{scheme}.png")
    page.set_viewport_size(SIZES["desktop"])
    page.keyboard.press("m")
    page.keyboard.press("]")
    page.keyboard.press("Enter")
    expect(page.locator("#content .sample img")).to_have_count(12)
    page.wait_for_timeout(500)
    page.screenshot(path=folder / "label-lasso.png")
    page.keyboard.press("Escape")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.3, help="seconds to look at a row")
    parser.add_argument("--screenshots", type=Path)
    given = parser.parse_args()
    data = np.load(Path(os.environ["BIGLP_DATA"]) / "mnist.npz")
    rows, names = data["X"][: given.rows], data["y"][: given.rows].astype(str)
    expect.set_options(timeout=PATIENCE)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        np.save(folder / "mnist.npy", rows)
        chromium = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with server(folder) as address:
            page = chromium.new_page(viewport=SIZES["desktop"], reduced_motion="reduce")
            page.add_init_script(CLOCK)
            page.goto(address)
            expect(page.locator("#content img")).to_be_visible()
            label(page, names, given.labels, given.pause)
            took = np.array(page.evaluate("window.tookMs"))
            expect(page.locator("#estimate .big")).to_be_visible()
            print(f"estimated accuracy: {page.locator('#estimate').inner_text()!r}")
            if given.screenshots:
                screenshots(page, given.screenshots)
            found = finish(page, folder)
        chromium.close()
    median, most = np.percentile(took, [50, 95])
    print(f"key to next row, {len(took)} keys: median {median:.0f} ms, 95 % {most:.0f} ms")
    print(f"right of {given.rows:,} rows: {100 * (found == names).mean():.1f} %")


if __name__ == "__main__":
    main()
