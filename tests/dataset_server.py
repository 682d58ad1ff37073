"""A real web server for download tests, with the ways in which servers and networks misbehave."""

import hashlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    ranges: bool = True
    tags: bool = True
    lengths: bool = True
    heeds_if_range: bool = True
    drops: list[int] = field(default_factory=list)
    """Bytes of the body after which the next answers break off; -n: by a reset, not politely."""
    statuses: list[int] = field(default_factory=list)
    """Codes that the next requests are answered with."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    conditions: list[str | None] = field(default_factory=list)
    sent: int = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        site = self.site
        site.asked.append((self.path, self.headers.get("Range")))
        site.conditions.append(self.headers.get("If-Range"))
        body = site.files.get(self.path)
        code = site.statuses.pop(0) if site.statuses else 404 if body is None else 200
        tag = f'"{hashlib.md5(body or b"").hexdigest()}"'
        # A date for each content, as if every version had been written at another time.
        date = f"Mon, 01 Jan 2024 00:00:{int(tag[1:5], 16) % 60:02d} GMT"
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range") in (None, tag, date) or not site.heeds_if_range
        start = int(asked[1]) if site.ranges and asked and same else 0
        if code == 200 and start:
            code = 206 if start < len(body or b"") else 416
        self.send_response(code)
        if code not in (200, 206):
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        assert body is not None
        if site.lengths:
            self.send_header("Content-Length", str(len(body) - start))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        if code == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if site.tags:
            self.send_header("ETag", tag)
        self.send_header("Last-Modified", date)
        self.end_headers()
        body = body[start:]
        if site.drops:
            after = site.drops.pop(0)
            body = body[: abs(after)]
            if after < 0:  # unsent and unread bytes are thrown away, the other side sees a reset
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
        self.wfile.write(body)
        site.sent += len(body)


@contextmanager
def serving() -> Iterator[Site]:
    site = Site()
    handler = type("SiteHandler", (Handler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
