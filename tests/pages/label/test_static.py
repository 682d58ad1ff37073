"""What the page is made of, read off its files: nothing from elsewhere, nothing that makes HTML."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import biglp

STATIC = Path(biglp.__file__).parent / "_labelling" / "page"
FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
NAMESPACE = "http://www.w3.org/2000/svg"


def named(path: Path) -> str:
    return str(path.relative_to(STATIC))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_files_are_short_and_load_nothing_from_elsewhere(path):
    text = path.read_text(encoding="utf-8").replace(NAMESPACE, "")
    assert len(text.splitlines()) <= 300
    assert not re.search(r"https?://|@import|url\(", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_scripts_make_no_html_and_no_code(path):
    text = path.read_text(encoding="utf-8")
    banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    assert not re.search(banned, text)
    for imported in re.findall(r'from "([^"]+)"', text):
        assert (path.parent / imported).is_file(), imported


def test_the_page_has_no_script_or_style_of_its_own():
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]
    for asked in re.findall(r'(?:src|href)="/static/([^"]+)"', text):
        assert (STATIC / asked).is_file(), asked
