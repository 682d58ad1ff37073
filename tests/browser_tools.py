"""A real browser on the labelling page of a real server, driven by keyboard as a person would."""

from __future__ import annotations

import csv
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from cli_tools import Process

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking")
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
PATIENCE = 120_000
"""Milliseconds until something that must happen counts as missing; machines may be busy."""
KEY_OF = """(name) => [...document.querySelectorAll("#classes button")]
  .find((each) => each.title === name)?.querySelector("kbd").textContent"""
SCRIPT = "<script>window.hacked = 1</script>"
IMAGE = '"><img src=x onerror="window.hacked = 1">'
"""Text that would act if it were taken for HTML."""


def why_no_browser() -> str:
    if CHROMIUM is None:
        return "no chromium on this machine (apt-get install chromium)"
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed (pip install 'biglp[test]')"
    return ""


class Served:
    def __init__(self, folder: Path, *args: object) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.args = (*args, "--labels", "answers.csv", "--port", self.port, "--no-browser")
        self.start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        token = (self.folder / ".answers.csv.token").read_text().strip()
        return f"{self.origin}/?token={token}"

    def start(self) -> None:
        self.process = Process(self.folder, "label", *self.args)
        for _ in range(600):
            try:
                urlopen(f"{self.origin}/", timeout=5).close()
            except HTTPError as error:  # it wants a token: it is there
                error.close()
                return
            except OSError:
                pass
            assert self.process.wait(0.1) is None, self.process.stderr
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self.process.signal(signal.SIGKILL)

    def stop(self) -> None:
        if self.process.wait(0) is None:
            self.process.signal(signal.SIGTERM)

    def answers(self) -> dict[str, str]:
        with (self.folder / "answers.csv").open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))[1:]
        return {line[0]: line[1] for line in lines if line[1]}


class Labelling:
    def __init__(self, page: Any) -> None:
        self.page = page
        page.set_default_timeout(PATIENCE)
        self.said: list[str] = []
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("console", lambda told: self.said.append(told.text) if told.type == "error" else 0)

    def open(self, url: str) -> Labelling:
        self.page.goto(url)
        self.expect("#think").not_to_be_empty()
        return self

    def violations(self, place: str = "html") -> list[tuple[str, list[str], str]]:
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page, context=place).response["violations"]
        return [
            (each["id"], node["target"], node["failureSummary"])
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def expect(self, place: str) -> Any:
        from playwright.sync_api import expect

        expect.set_options(timeout=PATIENCE)
        return expect(self.page.locator(place))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, place: str) -> str:
        found: str = self.page.locator(place).inner_text()
        return found

    @property
    def row(self) -> int:
        return int(self.text("#work-title").removeprefix("Row ").split(" ")[0].replace(",", ""))

    def key(self, name: str) -> str | None:
        found: str | None = self.page.evaluate(KEY_OF, name)
        return found

    def has_focus(self, place: str) -> None:
        self.expect(place).to_be_focused()

    def answer(self, name: str) -> int:
        row = self.row
        key = self.key(name)
        if key:
            self.press(key)
        else:
            self.page.keyboard.type(name)
            self.press("Enter")
        self.expect("#saved").to_have_text(f"✓ Saved row {row:,} as {name}")
        wait_for(lambda: self.key(name) is not None)
        return row


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield made
        finally:
            made.close()


def wait_for(condition: Any, seconds: float = PATIENCE / 1000) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.1)
