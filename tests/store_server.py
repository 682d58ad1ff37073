"""An S3 server on 127.0.0.1 (moto's), and a proxy before it that breaks answers on request."""

import http.client
import logging
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

BUCKET = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
FAULTS = ("drop", "reset", "503", "slow", "truncate", "corrupt")


@dataclass
class Store:
    """A server, and what is to go wrong with its next answers.

    Each of the faults is used up by one answer to a request of ``methods``; "" lets one pass.
    ``drop`` closes the connection in the middle of the answer, ``reset`` before it, ``503`` asks to
    come again, ``slow`` takes its time, ``truncate`` sends half and says that this is all,
    ``corrupt`` turns over a bit.
    """

    server_port: int
    port: int = 0
    faults: list[str] = field(default_factory=list)
    methods: tuple[str, ...] = ("GET",)
    asked: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def environment(self) -> dict[str, str]:
        return {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def uri(self, name: str) -> str:
        return f"s3://{BUCKET}/{name}"

    def next_fault(self, method: str, path: str) -> str:
        with self.lock:
            self.asked.append(f"{method} {path}")
            if method in self.methods and self.faults:
                return self.faults.pop(0)
        return ""

    def request(self, method: str, name: str, body: bytes = b"") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)
        path = f"/{BUCKET}/{name if name.startswith('?') else quote(name)}"
        connection.request(method, path, body, {"Authorization": "AWS test:test"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        assert answer.status < 300, (answer.status, data[:300])
        return data

    def put(self, name: str, data: bytes) -> str:
        self.request("PUT", name, data)
        return self.uri(name)

    def get(self, name: str) -> bytes:
        return self.request("GET", name)

    def clear(self) -> None:
        self.faults, self.methods, self.asked = [], ("GET",), []
        for name in self.keys():
            self.request("DELETE", name)

    def names(self) -> list[str]:
        return [key for key in self.keys() if not key.endswith("/")]

    def keys(self) -> list[str]:
        from xml.etree import ElementTree

        listed = ElementTree.fromstring(self.request("GET", "?list-type=2"))
        return sorted(key.text or "" for key in listed.iter() if key.tag.endswith("}Key"))


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _forward(self) -> None:
        fault = self.store.next_fault(self.command, self.path)
        sent = self._body()
        if fault == "reset":
            return self._break_off()
        if fault == "503":
            self.send_response(503, "Slow Down")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if fault == "slow":
            time.sleep(0.2)
        connection = http.client.HTTPConnection("127.0.0.1", self.store.server_port, timeout=60)
        skipped = ("connection", "content-length", "transfer-encoding", "expect")
        headers = {k: value for k, value in self.headers.items() if k.lower() not in skipped}
        connection.request(self.command, self.path, sent, headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        length = answer.headers.get("Content-Length", str(len(body)))
        if fault == "truncate" and body:
            body = body[: len(body) // 2]
            length = str(len(body))
        if fault == "corrupt" and body:
            place = random.randrange(len(body))
            body = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        self.send_response(answer.status, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if fault == "drop":
            self.wfile.write(body[: len(body) // 2])
            return self._break_off()
        if self.command != "HEAD":
            self.wfile.write(body)
        return None

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _break_off(self) -> None:
        linger = struct.pack("ii", 1, 0)  # the other side sees a reset
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815  http.server's names


@pytest.fixture(scope="session")
def store_server() -> Iterator[Store]:
    pytest.importorskip("moto.server")
    with serving() as store:
        yield store


@pytest.fixture
def store(store_server, tmp_path, monkeypatch) -> Store:
    from biglp._files import uri as stores

    for name, value in store_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stores, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(stores, "TRIES", 3)
    stores.object_store.cache_clear()
    store_server.clear()
    return store_server


@contextmanager
def serving() -> Iterator[Store]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # which notes each request otherwise
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    store = Store(server.get_host_and_port()[1])
    store.request("PUT", "")
    handler = type("StoreProxy", (Proxy,), {"store": store})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy.daemon_threads = True
    store.port = proxy.server_address[1]
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield store
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
        server.stop()
