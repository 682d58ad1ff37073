"""Who may talk to the server: the one who has the token, from a page of this server, and no other.

A page of another site can make a browser send requests to this machine. It is kept out four times:
by the Host that was asked for (a foreign name that was made to point here is refused), by a cookie
that the browser sends from this site's own pages only, by the Origin that browsers tell, and by a
header that foreign pages may not set.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import SimpleCookie
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]

COOKIE = "biglp"
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
NO_TOKEN = (
    "This page needs the address that biglp label has printed in its terminal: it ends in ?token=…"
)
MOST_BYTES = 4 << 20
"""Largest request that is read."""


class Guard:
    """Lets requests through to an application, or refuses them.

    Parameters
    ----------
    app : ASGI application
    token : str
    hosts : sequence of str
        What the Host header may say, with the port.
    """

    def __init__(self, app: App, token: str, hosts: tuple[str, ...]) -> None:
        self.app, self.token = app, token
        self.hosts = frozenset(host.lower() for host in hosts)
        # Cookies do not know ports: two servers of one machine need two names.
        self.cookie = f"{COOKIE}-{hosts[0].rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _reply(send, *refusal)
            return
        await self.app(scope, receive, _with_headers(send))

    def _refusal(
        self, scope: Scope, headers: list[tuple[str, str]]
    ) -> tuple[int, str, dict[str, str]] | None:
        """Status, text and headers of a refusal, or of the swap of the token for a cookie."""
        hosts = [value.lower() for name, value in headers if name == "host"]
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return 403, "This server answers to its own address only.", {}
        given = dict(headers)
        origin = given.get("origin")
        if origin is not None and not self._own(origin):
            return 403, "This request came from another page.", {}
        if given.get("sec-fetch-site", "none") == "cross-site":
            return 403, "This request came from another page.", {}
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] == "/" and "token" in query:
            if self._is_token(query["token"][0]):
                cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                return 303, "", {"location": "/", "set-cookie": cookie}
            return 403, NO_TOKEN, {}
        cookies = [value for name, value in headers if name == "cookie"]
        if not self._is_token(_cookie(self.cookie, cookies)):
            return 403, NO_TOKEN, {}
        if scope["method"] not in ("GET", "HEAD"):
            if given.get("x-biglp") != "1" or origin is None:
                return 403, "Changes are made from the page of this server only.", {}
            length = given.get("content-length", "")
            if not length.isdigit() or int(length) > MOST_BYTES:
                return 413, "This request is too large.", {}
        return None

    def _own(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and host.lower() in self.hosts

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _cookie(wanted: str, headers: list[str]) -> str:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load("; ".join(headers))
    except Exception:  # http.cookies refuses some cookies of other programs on this host
        return ""
    return cookies[wanted].value if wanted in cookies else ""


def _with_headers(send: Any) -> Any:
    async def wrapped(message: Scope) -> None:
        if message["type"] == "http.response.start":
            named = {name.lower() for name, _ in message["headers"]}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            if b"cache-control" not in named:
                more.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return wrapped


async def _reply(send: Any, status: int, text: str, headers: dict[str, str]) -> None:
    body = text.encode()
    told = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store", **headers}
    lines = [(name.encode(), value.encode()) for name, value in told.items()]
    lines.append((b"content-length", str(len(body)).encode()))
    send = _with_headers(send)
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


def _is_private(path: Path) -> bool:
    """Whether others are kept out; Windows has no such bits, and a folder of the user's does it."""
    return not hasattr(os, "getuid") or not path.stat().st_mode & 0o077


def kept_token(labels: Path) -> str:
    """The token of a file of labels: the same after a restart, so that open pages go on.

    It stands in a hidden file beside it that only its owner may read.
    """
    path = labels.with_name(f".{labels.name}.token")
    try:
        token = path.read_text(encoding="ascii").strip()
        if len(token) >= 32 and _is_private(path):
            return token
        path.unlink()
    except (OSError, UnicodeDecodeError):
        pass
    token = token_urlsafe(32)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token
