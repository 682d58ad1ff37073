"""Checks of the pages and pictures that experiments write."""

import re
from xml.etree import ElementTree


def check_page(text):
    for line in text.splitlines():
        if line.startswith("|") and not set(line) <= set("|-"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert all(cells), line
            assert "nan" not in [cell.lower() for cell in cells], line
    return re.findall(r"!\[[^]]+\]\((img/[^)]+)\.png\)", text)


def check_images(folder, names):
    for name in names:
        png, svg = folder / f"{name}.png", folder / f"{name}.svg"
        assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert png.stat().st_size < 200_000
        assert ElementTree.parse(svg).getroot().tag.endswith("svg")
