"""Who may talk to the server, and where it listens: a guard, a token and an address."""

from __future__ import annotations

import hmac
import os
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from biglp._core.errors import ParameterError

# --------------------------------------------------------------------------------------------------
# Who may talk to the server: the one who has the token, from a page of this server, and no other.
#
# A page of another site can make a browser send requests to this machine. It is kept out four
# times: by the Host that was asked for (a foreign name that was made to point here is refused), by
# a cookie that the browser sends from this site's own pages only, by the Origin that browsers tell,
# and by a header that foreign pages may not set.


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

    Starlette's TrustedHostMiddleware looks past the port, and at the first of several Host headers:
    a page of another port of this machine would be let in. ``hosts`` are what the Host header may
    say, with the port.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: tuple[str, ...]) -> None:
        self.app, self.token = app, token
        self.hosts = frozenset(host.lower() for host in hosts)
        # Cookies do not know ports: two servers of one machine need two names.
        self.cookie = f"{COOKIE}-{hosts[0].rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._refusal(Request(scope)) or self.app
        await answer(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        """A refusal, or the swap of the token for a cookie."""
        headers = request.headers
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return PlainTextResponse("This server answers to its own address only.", 403)
        origins = headers.getlist("origin")
        is_foreign = not all(map(self._is_own, origins))
        if is_foreign or "cross-site" in headers.getlist("sec-fetch-site"):
            return PlainTextResponse("This request came from another page.", 403)
        given = request.query_params.get("token")
        if request.scope["path"] == "/" and given:
            if not self._is_token(given):
                return PlainTextResponse(NO_TOKEN, 403)
            cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            return RedirectResponse("/", 303, headers={"set-cookie": cookie})
        if not self._is_token(request.cookies.get(self.cookie, "")):
            return PlainTextResponse(NO_TOKEN, 403)
        if request.method not in ("GET", "HEAD"):
            if headers.get("x-biglp") != "1" or not origins:
                return PlainTextResponse("Changes are made from the page of this server only.", 403)
            length = headers.get("content-length", "")
            if not length.isdigit() or int(length) > MOST_BYTES:
                return PlainTextResponse("This request is too large.", 413)
        return None

    def _is_own(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and host.lower() in self.hosts

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def kept_token(labels: Path) -> str:
    """The token of a file of labels: the same after a restart, so that open pages go on.

    It stands in a hidden file beside it that only its owner may read.
    """
    path = labels.with_name(f".{labels.name}.token")
    try:
        token = path.read_text(encoding="ascii").strip()
        # Windows has no such bits, and a folder of the user's keeps others out.
        private = not hasattr(os, "getuid") or not path.stat().st_mode & 0o077
        if len(token) >= 32 and private:
            return token
        path.unlink()
    except (OSError, UnicodeDecodeError):
        pass
    token = token_urlsafe(32)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    """Where the server listens."""

    host: str = "127.0.0.1"
    port: int = 0  # any that is free
    i_know: bool = False  # whether other machines may reach it

    def check(self) -> None:
        """Refuse an address that other machines reach, unless that is meant."""
        try:
            loopback = self.host == "localhost" or ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            loopback = False
        if not self.i_know and not loopback:
            raise ParameterError(
                f"host={self.host!r} can be reached from other machines, and what the page shows "
                "crosses the network unencrypted. Use 127.0.0.1 with a tunnel (ssh -L) or a "
                "reverse proxy, as docs/label-page.md shows, or add --i-know."
            )

    def listen(self) -> socket.socket:
        """Open the port."""
        host = self.host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        # On Windows SO_REUSEADDR would let any other program take the port over.
        alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        listening.setsockopt(socket.SOL_SOCKET, alone, 1)
        try:
            listening.bind((host, self.port))
        except OSError as error:
            listening.close()
            raise ParameterError(
                f"port={self.port} of {self.host} cannot be used: {error.strerror}. Give another "
                "--port, or none for any that is free."
            ) from error
        listening.listen(128)
        return listening
