"""Whole labelling sessions in a real browser, by keyboard: images, and a table with text.

Needs chromium, BIGLP_DATA and the extras label and test. From no label to ``--labels`` of MNIST or
AG News, with a step back, a skip, a new class, a class renamed, a wrong answer that is corrected, a
circle on the map, and the finish. Says how long the next row took after each key (in the page: from
the key to the frame that shows the next row with its image), whether the file of labels holds just
what was answered, and how many of all rows got the right class.

    python benchmarks/label_browser.py mnist,text --labels 60
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser_tools import DESKTOP, PHONE, Labelling, Served, browser, wait_for  # noqa: E402

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
RENAMED = "another name"
PLANTED_AT, CORRECTED_FROM = 15, 40
"""Answers before the wrong one, and before it is looked for among those in doubt."""


def mnist(folder: Path, rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Images as an array; their classes, and what names them on the command line."""
    data = np.load(Path(os.environ["BIGLP_DATA"]) / "mnist.npz")
    np.save(folder / "mnist.npy", data["X"][:rows])
    return data["y"][:rows].astype(str), ("mnist.npy",)


def text(folder: Path, rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """A table with a column of text, without its labels."""
    table = pyarrow.csv.read_csv(Path(os.environ["BIGLP_DATA"]) / "ag_news_8k.csv").slice(0, rows)
    names = [f"topic {value}" for value in table["label"].to_pylist()]
    pyarrow.csv.write_csv(table.drop_columns("label"), folder / "news.csv")
    return np.array(names), ("news.csv", "--text", "text")


DATA = {"mnist": mnist, "text": text}


class Session:
    """Someone who labels, knows the truth, and makes one mistake.

    Parameters
    ----------
    served : Served
    page : Labelling
    names : ndarray of str
        The truth.
    pause : float
        Seconds to look at a row.
    """

    def __init__(self, served: Served, page: Labelling, names: np.ndarray, pause: float) -> None:
        self.served, self.page, self.names, self.pause = served, page, names.copy(), pause
        self.given: dict[int, str] = {}
        self.wrong = -1

    def answer(self, n: int) -> None:
        """Answer rows as they come."""
        for _ in range(n):
            name = str(self.names[self.page.row])
            self.given[self.page.answer(name)] = name
            time.sleep(self.pause)

    def label(self, n: int) -> None:
        """Reach ``n`` labels, with everything that happens on the way."""
        self.answer(PLANTED_AT - 5)
        self.step_back()
        self.skip()
        self.rename()
        self.answer(PLANTED_AT - len(self.given))
        self.wrong = self.page.row
        others = [name for name in set(self.given.values()) if name != self.names[self.wrong]]
        self.given[self.page.answer(sorted(others)[0])] = sorted(others)[0]
        self.answer(CORRECTED_FROM - len(self.given))
        while self.wrong >= 0 and len(self.given) < n:
            self.correct()
            self.answer(1)
        self.answer(n - len(self.given))

    def step_back(self) -> None:
        """Undo the last answer, and give it again."""
        last = list(self.given)[-1]
        self.page.press("Control+z")
        self.page.expect("#work-title").to_contain_text(f"Row {last:,}")
        assert str(last) not in self.served.answers()
        del self.given[last]
        self.answer(1)

    def skip(self) -> None:
        """Put a row aside."""
        row = self.page.row
        self.page.press("Alt+s")
        self.page.expect("#saved").to_have_text(f"✓ Skipped row {row:,}")

    def rename(self) -> None:
        """Call the class of the last answer something else."""
        before = list(self.given.values())[-1]
        self.page.press("Alt+r")
        self.page.page.locator(f'#class-dialog input[value="{before}"]').focus()
        self.page.press("Control+a")
        self.page.page.keyboard.type(RENAMED)
        self.page.press("Enter")
        self.page.expect(f'#class-dialog input[value="{RENAMED}"]').to_be_visible()
        self.page.press("Escape")
        self.page.expect("#class-dialog").to_be_hidden()
        self.names = np.where(self.names == before, RENAMED, self.names)
        self.given = {row: RENAMED if n == before else n for row, n in self.given.items()}

    def correct(self) -> None:
        """Change the wrong answer by its button, once the model doubts it."""
        right = str(self.names[self.wrong])
        button = self.page.page.get_by_role("button", name=f"Change row {self.wrong:,} to {right}")
        if button.count() == 0:
            return
        self.page.press("Alt+d")
        for _ in range(60):
            self.page.press("Tab")
            if button.evaluate("node => node === document.activeElement"):
                break
        self.page.press("Enter")
        self.page.expect("#saved").to_contain_text(f"{self.wrong:,} as {right}")
        self.given[self.wrong], self.wrong = right, -1
        print(f"the wrong answer was in doubt and corrected after {len(self.given)} answers")

    def circle(self) -> None:
        """Label the rows in a circle on the map, and take that back."""
        self.page.expect("#map-text").to_contain_text("near ones alike")
        self.page.press("Alt+m")
        self.page.has_focus("#map")
        self.page.press("]", "ArrowRight", "ArrowLeft", "Enter")
        self.page.expect("#work-title").to_contain_text("rows selected")
        n = int(self.page.text("#work-title").split(" ")[0].replace(",", ""))
        name = next(iter(self.given.values()))
        self.page.press(str(self.page.key(name)))
        self.page.expect("#saved").to_have_text(f"✓ Saved {n:,} rows as {name}")
        assert len(self.served.answers()) >= n
        self.page.press("Control+z")
        wait_for(self.exact)

    def exact(self) -> bool:
        """Whether the file of labels holds just what was answered."""
        return self.served.answers() == {str(row): name for row, name in self.given.items()}

    def finish(self) -> float:
        """Label all rows; returns the share that is right."""
        self.page.press("Alt+f", "Enter")
        wait_for(lambda: "Done." in self.page.text("#finish-dialog"), 600)
        self.page.press("Escape")
        (written,) = (self.served.folder / "answers-out").glob("labels*")
        found = np.load(written) if written.suffix == ".npy" else pq.read_table(written)["label"]
        return float((np.asarray(found).astype(str) == self.names).mean())


def screenshots(page: Any, kind: str, folder: Path) -> None:
    """Draw the page on both widths, in light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for scheme, size, view in (
        ("light", "desktop", DESKTOP),
        ("dark", "desktop", DESKTOP),
        ("light", "phone", PHONE),
    ):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(view)
        page.wait_for_timeout(500)
        page.screenshot(path=folder / f"label-{kind}-{size}-{scheme}.png")
    page.set_viewport_size(DESKTOP)


def run(kind: str, given: argparse.Namespace) -> None:
    """One session."""
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        names, arguments = DATA[kind](Path(name), given.rows)
        served = Served(Path(name), *arguments)
        try:
            page = chromium.new_page(viewport=DESKTOP, reduced_motion="reduce")
            page.add_init_script(CLOCK)
            session = Session(served, Labelling(page).open(served.url), names, given.pause)
            session.label(given.labels)
            took = np.array(page.evaluate("window.tookMs"))
            session.circle()
            if given.screenshots:
                screenshots(page, kind, given.screenshots)
            exact, right = session.exact(), session.finish()
            exact = exact and session.exact()
            assert session.page.said == [], session.page.said
        finally:
            served.stop()
    median, most = np.percentile(took, [50, 95])
    print(
        f"{kind}: {len(names):,} rows, {len(session.given)} labels; key to next row, "
        f"{len(took)} keys: median {median:.0f} ms, 95 % {most:.0f} ms; the file of labels is "
        f"{'exact' if exact else 'WRONG'}; the wrong answer is "
        f"{'corrected' if session.wrong < 0 else 'still there'}; right {100 * right:.1f} %"
    )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="?", default="mnist,text")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.3, help="seconds to look at a row")
    parser.add_argument("--screenshots", type=Path)
    given = parser.parse_args()
    for kind in given.kinds.split(","):
        run(kind, given)


if __name__ == "__main__":
    main()
