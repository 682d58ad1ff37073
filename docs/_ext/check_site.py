"""Check a built site: links inside it lead somewhere, and nothing is fetched from elsewhere.

Run with:  python docs/_ext/check_site.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}
"""What a browser fetches by itself when it opens a page."""
NOT_FETCHED = {"canonical", "next", "prev", "search", "index", "author", "help", "genindex"}


class Page(HTMLParser):
    """The names in a page and the addresses that it points to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Keep IDs and links."""
        given = dict(attributes)
        self.names |= {value for key in ("id", "name") if (value := given.get(key))}
        for key in ("href", "src"):
            if value := given.get(key):
                self.links.append((tag, value, given.get("rel") or ""))


def problems(folder: Path) -> list[str]:
    """Say what is wrong with a site."""
    every = sorted(folder.rglob("*.html"))
    pages = {path: Page(path) for path in every if "_static" not in path.parts}  # no templates
    found = []
    for path, page in pages.items():
        here = path.relative_to(folder)
        for tag, link, rel in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag in FETCHED and rel not in NOT_FETCHED and parts.scheme != "data":
                    found.append(f"{here}: fetches {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{here}: there is no {link}")
            elif (
                target in pages
                and parts.fragment
                and unquote(parts.fragment) not in pages[target].names
            ):
                found.append(f"{here}: no place {link}")
    for style in sorted(folder.rglob("*.css")):
        text = style.read_text(encoding="utf-8", errors="replace")
        if "url(http" in text or '@import "http' in text or "@import url(" in text:
            found.append(f"{style.relative_to(folder)}: fetches from elsewhere")
    return found


def main() -> None:
    """Check the folder that is named."""
    folder = Path(sys.argv[1]).resolve()
    found = problems(folder)
    count = len(list(folder.rglob("*.html")))
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(f"{len(found)} problems in {count} pages")
    print(f"{count} pages: every link inside leads somewhere, nothing is fetched from elsewhere")


if __name__ == "__main__":
    main()
